//! Claims on interfaces: one server at a time sends on an interface.
//!
//! What lives here: a name in the kernel's list of sockets that only one process can have, and who
//! has it. Such a name belongs to a network namespace, as interfaces do, and is free again when its
//! process ends, however it ends. What does not: programs that are not Allosaur.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{sockaddr_un, socklen_t};

use crate::PortError;
use crate::interface::Interface;

/// How names of claims begin; the number of the interface follows.
const PREFIX: &str = "allosaur/interface/";
/// How many may ask who has it before the kernel tells nobody any more.
const ASKING_MAX: libc::c_int = 4096;

/// An interface that is claimed until this is dropped.
#[derive(Debug)]
pub struct Claim {
    /// None on loopback, which is everybody's.
    _socket: Option<OwnedFd>,
}

impl Claim {
    /// Claims an interface.
    ///
    /// # Errors
    ///
    /// Names the process that has it, as far as it is known.
    pub fn on(interface: &Interface) -> Result<Claim, PortError> {
        match interface.is_loopback {
            true => Ok(Claim { _socket: None }),
            false => Claim::on_index(&interface.name, interface.index),
        }
    }

    fn on_index(name: &str, index: i32) -> Result<Claim, PortError> {
        let address = Address::new(index);
        let claimed = open().and_then(|socket| {
            address.call(libc::bind, &socket)?;
            // SAFETY: takes two numbers.
            match unsafe { libc::listen(socket.as_raw_fd(), ASKING_MAX) } {
                0 => Ok(socket),
                _ => Err(io::Error::last_os_error()),
            }
        });
        match claimed {
            Ok(socket) => Ok(Claim {
                _socket: Some(socket),
            }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(taken(name, holder(&address).ok()))
            }
            Err(error) => Err(PortError::Interface {
                name: name.to_owned(),
                problem: format!("the system does not let it be claimed: {error}"),
                remedy: "Try again, or use another interface".to_owned(),
            }),
        }
    }
}

/// The number of the interface that a socket of this name claims.
pub(crate) fn interface_of(name: &str) -> Option<i32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

fn taken(name: &str, holder: Option<i32>) -> PortError {
    if holder == Some(std::process::id() as i32) {
        return PortError::Interface {
            name: name.to_owned(),
            problem: "another port of this process has it already".to_owned(),
            remedy: "Name each interface once".to_owned(),
        };
    }
    let (who, remedy) = match holder {
        Some(process) => (
            format!(", process {process},"),
            format!("End that one (kill {process}), or use another interface"),
        ),
        None => (
            String::new(),
            "End that one, or use another interface".to_owned(),
        ),
    };
    PortError::Interface {
        name: name.to_owned(),
        problem: format!("another Allosaur server{who} has it already"),
        remedy,
    }
}

/// The process that has a name.
fn holder(address: &Address) -> io::Result<i32> {
    let socket = open()?;
    address.call(libc::connect, &socket)?;
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut bytes = size_of::<libc::ucred>() as socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes, the size of what is there.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut peer).cast(),
            &mut bytes,
        )
    };
    match answer {
        // 0 is a process that this one cannot see.
        0 if peer.pid > 0 => Ok(peer.pid),
        0 => Err(io::ErrorKind::NotFound.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes three numbers, and no memory.
    let socket = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// The abstract name of a claim: see `unix(7)`.
struct Address {
    address: sockaddr_un,
    bytes: socklen_t,
}

type Call = unsafe extern "C" fn(libc::c_int, *const libc::sockaddr, socklen_t) -> libc::c_int;

impl Address {
    fn new(index: i32) -> Address {
        // SAFETY: all of it are numbers, for which zeros are right.
        let mut address: sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let name = format!("{PREFIX}{index}");
        // The zero in front makes the name an abstract one.
        for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let bytes = std::mem::offset_of!(sockaddr_un, sun_path) + 1 + name.len();
        Address {
            address,
            bytes: bytes as socklen_t,
        }
    }

    fn call(&self, call: Call, socket: &OwnedFd) -> io::Result<()> {
        // SAFETY: `bind` and `connect` read as many bytes of an address as they are told, and no
        // more than it has.
        let answer = unsafe {
            call(
                socket.as_raw_fd(),
                std::ptr::from_ref(&self.address).cast(),
                self.bytes,
            )
        };
        match answer {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_one_s_own_until_it_ends() {
        // No interface has such a number.
        let index = i32::MAX - 1;
        let first = Claim::on_index("eth9", index).expect("free");
        for _ in 0..3 {
            let error = Claim::on_index("eth9", index).expect_err("taken");
            let text = error.to_string();
            assert!(
                text.contains("'eth9': another port of this process"),
                "{text}"
            );
        }
        Claim::on_index("eth8", index - 1).expect("another interface");
        drop(first);
        Claim::on_index("eth9", index).expect("free again");
    }

    #[test]
    fn who_has_a_claim_is_named() {
        for (holder, words) in [
            (
                Some(1),
                &["another Allosaur server, process 1, has it", "kill 1"][..],
            ),
            (
                None,
                &["another Allosaur server has it", "another interface"],
            ),
        ] {
            let text = taken("eth9", holder).to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }

    #[test]
    fn names_of_claims_are_known_again() {
        assert_eq!(interface_of("allosaur/interface/7"), Some(7));
        assert_eq!(interface_of("allosaur/interface/x"), None);
        assert_eq!(interface_of("/run/x"), None);
    }
}
