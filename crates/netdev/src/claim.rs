//! Claims on interfaces and network cards: one server at a time sends on each.
//!
//! A claim is a name in the kernel's list of sockets that only one process can have. Such a name
//! belongs to a network namespace, as interfaces do, and is free again when its process ends,
//! however it ends. Programs that are not Allosaur know nothing of it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{sockaddr_un, socklen_t};

use crate::socket;

/// How names of claims on interfaces begin; the number of the interface follows.
const INTERFACE: &str = "allosaur/interface/";
/// How names of claims on network cards begin; the PCI address follows.
const CARD: &str = "allosaur/pci/";
/// How many may ask who has it before the kernel tells nobody any more.
const BACKLOG: libc::c_int = 4096;

/// What is claimed until this is dropped.
#[derive(Debug)]
pub struct Claim {
    _socket: OwnedFd,
}

impl Claim {
    /// Claims an interface by its number.
    ///
    /// # Errors
    ///
    /// Problem and remedy; they name the process that has it, as far as it is known.
    pub fn interface(index: i32) -> Result<Claim, (String, String)> {
        Claim::on_name(&format!("{INTERFACE}{index}"))
    }

    /// Claims a network card on the PCI bus by its address.
    ///
    /// # Errors
    ///
    /// As [`Claim::interface`].
    pub fn card(address: &str) -> Result<Claim, (String, String)> {
        Claim::on_name(&format!("{CARD}{address}"))
    }

    fn on_name(name: &str) -> Result<Claim, (String, String)> {
        let address = Address::new(name);
        let claimed = open().and_then(|socket| {
            address.call(libc::bind, &socket)?;
            // SAFETY: takes two numbers.
            match unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) } {
                0 => Ok(socket),
                _ => Err(io::Error::last_os_error()),
            }
        });
        match claimed {
            Ok(socket) => Ok(Claim { _socket: socket }),
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
    socket::read(&socket, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut peer)?;
    // 0 is a process that this one cannot see.
    match peer.pid {
        1.. => Ok(peer.pid),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

fn open() -> io::Result<OwnedFd> {
    socket::open(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)
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
        socket::succeeded(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_one_s_own_until_it_ends() {
        // No interface has such a number.
        let own = i32::MAX - 1;
        let first = Claim::interface(own).expect("free");
        for _ in 0..3 {
            let (problem, _) = Claim::interface(own).expect_err("taken");
            assert!(
                problem.contains("another port of this process"),
                "{problem}"
            );
        }
        Claim::interface(i32::MAX - 2).expect("another interface");
        drop(first);
        Claim::interface(own).expect("free again");
    }

    #[test]
    fn cards_are_claimed_as_interfaces_are() {
        // No machine has such a card.
        let card = format!("ffff:ff:1f.7/{}", std::process::id());
        let first = Claim::card(&card).expect("free");
        Claim::card(&card).expect_err("taken");
        drop(first);
        Claim::card(&card).expect("free again");
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
