//! Claims on interfaces and network cards: one server at a time sends on each.
//!
//! Such a name belongs to a network namespace, as interfaces do, and is free again when its process
//! ends, however it ends.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{sockaddr_un, socklen_t};

use crate::PortError;
use crate::interface::Interface;

/// How names of claims on interfaces begin; the number of the interface follows.
const INTERFACE: &str = "allosaur/interface/";
/// How names of claims on network cards begin; the PCI address follows.
const CARD: &str = "allosaur/pci/";
/// How many may ask who has it before the kernel tells nobody any more.
const ASKING_MAX: libc::c_int = 4096;

/// What is claimed until this is dropped.
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
        if interface.is_loopback {
            return Ok(Claim { _socket: None });
        }
        let claimed = Claim::on_name(&format!("{INTERFACE}{}", interface.index));
        claimed.map_err(|(problem, remedy)| PortError::Unavailable {
            name: interface.name.clone(),
            problem,
            remedy,
        })
    }

    /// Claims a network card on the PCI bus.
    ///
    /// # Errors
    ///
    /// As [`Claim::on`], as problem and remedy.
    pub fn on_card(address: &str) -> Result<Claim, (String, String)> {
        Claim::on_name(&format!("{CARD}{address}"))
    }

    fn on_name(name: &str) -> Result<Claim, (String, String)> {
        let address = Address::new(name);
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
                Err(taken(holder(&address).ok()))
            }
            Err(error) => Err((
                format!("the system does not let it be claimed: {error}"),
                "Try again, or use another one".to_owned(),
            )),
        }
    }
}

/// The number of the interface that a socket of this name claims.
pub(crate) fn interface_of(name: &str) -> Option<i32> {
    name.strip_prefix(INTERFACE)?.parse().ok()
}

/// The address of the network card that a socket of this name claims.
pub(crate) fn card_of(name: &str) -> Option<&str> {
    name.strip_prefix(CARD)
}

/// The problem and the remedy.
fn taken(holder: Option<i32>) -> (String, String) {
    if holder == Some(std::process::id() as i32) {
        return (
            "another port of this process has it already".to_owned(),
            "Name each interface once, and each card".to_owned(),
        );
    }
    match holder {
        Some(process) => (
            format!("another Allosaur server, process {process}, has it already"),
            format!("End that one (kill {process}), or use another one"),
        ),
        None => (
            "another Allosaur server has it already".to_owned(),
            "End that one, or use another one".to_owned(),
        ),
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
    fn new(name: &str) -> Address {
        // SAFETY: all of it are numbers, for which zeros are right.
        let mut address: sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
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
        let interface = |index: i32| Interface {
            name: "eth9".to_owned(),
            index,
            mac: [2; 6],
            mtu_bytes: 1500,
            line_rate_bps: 1e9,
            is_loopback: false,
        };
        let own = interface(i32::MAX - 1);
        let first = Claim::on(&own).expect("free");
        for _ in 0..3 {
            let text = Claim::on(&own).expect_err("taken").to_string();
            assert!(
                text.contains("'eth9': another port of this process"),
                "{text}"
            );
        }
        Claim::on(&interface(i32::MAX - 2)).expect("another interface");
        drop(first);
        Claim::on(&own).expect("free again");
    }

    #[test]
    fn cards_are_claimed_as_interfaces_are() {
        // No machine has such a card.
        let card = format!("ffff:ff:1f.7/{}", std::process::id());
        let first = Claim::on_card(&card).expect("free");
        Claim::on_card(&card).expect_err("taken");
        drop(first);
        Claim::on_card(&card).expect("free again");
    }

    #[test]
    fn who_has_a_claim_is_named() {
        for (holder, words) in [
            (
                Some(1),
                &["another Allosaur server, process 1, has it", "kill 1"][..],
            ),
            (None, &["another Allosaur server has it", "use another one"]),
        ] {
            let (problem, remedy) = taken(holder);
            let text = format!("{problem}. {remedy}");
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }

    #[test]
    fn names_of_claims_are_known_again() {
        assert_eq!(interface_of("allosaur/interface/7"), Some(7));
        assert_eq!(interface_of("allosaur/interface/x"), None);
        assert_eq!(interface_of("/run/x"), None);
        assert_eq!(card_of("allosaur/pci/0000:03:00.0"), Some("0000:03:00.0"));
        assert_eq!(card_of("allosaur/interface/7"), None);
    }
}
