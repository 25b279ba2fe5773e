//! A network interface of the kernel, as far as a port must know it.

mod control;
mod counters;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_char, c_int, c_ulong, ifreq};

use crate::{PortError, description, machine};

pub use control::InterfaceControl;

/// The rate that an interface is said to have that does not say its own.
pub const NOMINAL_RATE_BPS: f64 = 10e9;
/// Bytes of an Ethernet header.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// Bytes of a VLAN tag.
pub(crate) const VLAN_TAG_BYTES: usize = 4;

/// How the link of a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Frames can pass.
    Up,
    /// Up, and the other end is not: a cable that is pulled, a peer that is down.
    NoCarrier,
    /// Somebody set the interface down.
    SetDown,
    /// The interface was removed, or went to another network namespace.
    Gone,
}

impl LinkState {
    /// Whether frames can pass.
    pub fn is_up(self) -> bool {
        self == LinkState::Up
    }

    /// Why not; empty when they can.
    pub fn cause(self) -> &'static str {
        match self {
            LinkState::Up => "",
            LinkState::NoCarrier => "no carrier",
            LinkState::SetDown => "the interface was set down",
            LinkState::Gone => "the interface is gone",
        }
    }
}

/// What a port must know about its interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kernel's number for it.
    pub index: i32,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// The longest payload of Ethernet, in bytes.
    pub mtu_bytes: usize,
    /// Bits per second, or [`NOMINAL_RATE_BPS`].
    pub line_rate_bps: f64,
    /// Whether what it sends comes back to it: any number of programs may use it.
    pub is_loopback: bool,
}

impl Interface {
    /// Looks an interface up in the network namespace of this thread.
    ///
    /// # Errors
    ///
    /// Names the interface and the remedy when it is not there, is down, or is not Ethernet.
    pub fn find(name: &str) -> Result<Interface, PortError> {
        let refused = |error: io::Error| {
            let problem = format!("the system does not tell about it: {error}");
            problem_with(name, problem, "Try again, or use another interface")
        };
        let asker = Asker::new(name).map_err(refused)?;
        let index = match asker.index() {
            Ok(index) => index,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Err(missing(name)),
            Err(error) => return Err(refused(error)),
        };
        let (family, mac) = asker.hardware_address().map_err(refused)?;
        if ![libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&family) {
            let problem = "it does not carry Ethernet frames".to_owned();
            return Err(problem_with(name, problem, "Use an Ethernet interface"));
        }
        if asker.flags().map_err(refused)? & libc::IFF_UP == 0 {
            let remedy = format!("Bring it up: ip link set {name} up");
            return Err(unavailable(name, "it is down".to_owned(), &remedy));
        }
        Ok(Interface {
            name: name.to_owned(),
            index,
            mac,
            mtu_bytes: asker.mtu_bytes().map_err(refused)?,
            line_rate_bps: speed_bps(name).unwrap_or(NOMINAL_RATE_BPS),
            is_loopback: family == libc::ARPHRD_LOOPBACK,
        })
    }

    /// How many hardware queues it has, that both send and receive.
    pub(crate) fn queues(&self) -> usize {
        let asked = Asker::new(&self.name).and_then(|asker| asker.queues());
        asked.ok().or_else(|| self.queues_listed()).unwrap_or(1)
    }

    /// The same, as the file system tells of interfaces whose driver does not. It may show those of
    /// another network namespace.
    fn queues_listed(&self) -> Option<usize> {
        let folder = std::path::Path::new("/sys/class/net").join(&self.name);
        let index = std::fs::read_to_string(folder.join("ifindex")).ok()?;
        if index.trim() != self.index.to_string() {
            return None;
        }
        let files = std::fs::read_dir(folder.join("queues")).ok()?;
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let names: Vec<String> = names.collect();
        let count = |kind: &str| names.iter().filter(|name| name.starts_with(kind)).count();
        Some(count("rx-").min(count("tx-")).max(1))
    }

    /// The longest frame without a VLAN tag, in bytes without FCS.
    pub fn frame_bytes_max(&self) -> usize {
        self.mtu_bytes + ETHERNET_BYTES
    }
}

/// An error about an interface.
pub(crate) fn problem_with(name: &str, problem: String, remedy: &str) -> PortError {
    PortError::Interface {
        name: name.to_owned(),
        problem,
        remedy: remedy.to_owned(),
    }
}

/// An error about an interface that is right, and cannot be used now.
pub(crate) fn unavailable(name: &str, problem: String, remedy: &str) -> PortError {
    PortError::Unavailable {
        name: name.to_owned(),
        problem,
        remedy: remedy.to_owned(),
    }
}

fn missing(name: &str) -> PortError {
    let mut names = machine::interface_names();
    if machine::nearest(name, names.iter().map(String::as_str)).is_none() {
        names = description::kind_like(name).map_or(names, |kind| vec![kind.to_owned()]);
    }
    let hint = machine::suggestion(name, &names);
    let problem = match hint.is_empty() {
        true => "there is no such interface".to_owned(),
        false => format!("there is no such interface ({hint})"),
    };
    let remedy =
        "`allosaur ports` and `ip link` list the interfaces that are; other ports are memory";
    problem_with(name, problem, remedy)
}

/// What the interface says of its speed; virtual ones and those without a link may say nothing.
fn speed_bps(name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok()?;
    speed_of(&text)
}

/// The file holds megabits per second, and -1 where they are not known.
fn speed_of(text: &str) -> Option<f64> {
    let mbps: i64 = text.trim().parse().ok()?;
    let known = (1..i64::from(u32::MAX)).contains(&mbps);
    known.then_some(mbps as f64 * 1e6)
}

/// The question of ethtool whether there is a link.
const ETHTOOL_GLINK: u32 = 10;

/// The question of ethtool how many queues there are.
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// `struct ethtool_channels` of the kernel.
#[repr(C)]
#[derive(Default)]
struct EthtoolChannels {
    command: u32,
    max: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// `struct ethtool_value` of the kernel.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Asks the kernel about one interface.
#[derive(Debug)]
pub(crate) struct Asker {
    /// Any socket will do.
    socket: OwnedFd,
    name: [c_char; libc::IFNAMSIZ],
}

impl Asker {
    pub(crate) fn new(name: &str) -> io::Result<Asker> {
        let mut request_name = [0; libc::IFNAMSIZ];
        if name.len() >= libc::IFNAMSIZ {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request_name.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        // SAFETY: takes three numbers, and no memory.
        let socket =
            unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(Asker {
            socket,
            name: request_name,
        })
    }

    /// How the link of the interface is that has the number `index`. One that was made anew under
    /// the same name is another: sockets stay with the one that is gone.
    pub(crate) fn link(&self, index: c_int) -> LinkState {
        match (self.index(), self.flags()) {
            (Ok(found), Ok(_)) if found != index => LinkState::Gone,
            (Ok(_), Ok(flags)) if flags & libc::IFF_UP == 0 => LinkState::SetDown,
            (Ok(_), Ok(_)) if self.has_carrier() => LinkState::Up,
            (Ok(_), Ok(_)) => LinkState::NoCarrier,
            _ => LinkState::Gone,
        }
    }

    /// Whether there is somebody at the other end.
    fn has_carrier(&self) -> bool {
        let mut link = EthtoolValue {
            command: ETHTOOL_GLINK,
            data: 0,
        };
        // SAFETY: the kernel reads and writes one `ethtool_value`.
        match unsafe { self.ask_ethtool(&mut link) } {
            Ok(()) => link.data != 0,
            // Its driver does not say.
            Err(_) => self
                .flags()
                .is_ok_and(|flags| flags & libc::IFF_RUNNING != 0),
        }
    }

    /// How many hardware queues both send and receive, where the driver says.
    fn queues(&self) -> io::Result<usize> {
        let mut channels = EthtoolChannels {
            command: ETHTOOL_GCHANNELS,
            ..EthtoolChannels::default()
        };
        // SAFETY: the kernel reads and writes one `ethtool_channels`.
        unsafe { self.ask_ethtool(&mut channels)? };
        let one_way = channels.receive.min(channels.transmit);
        match channels.combined + one_way {
            0 => Err(io::ErrorKind::Unsupported.into()),
            queues => Ok(queues as usize),
        }
    }

    /// A question of ethtool.
    ///
    /// # Safety
    ///
    /// The kernel reads and writes no more than a `T` at the command that `question` begins with.
    unsafe fn ask_ethtool<T>(&self, question: &mut T) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_data = std::ptr::from_mut(question).cast();
        let socket = self.socket.as_raw_fd();
        // SAFETY: the kernel reads one `ifreq`, and for what it points to the caller answers; both
        // outlive the call.
        match unsafe { libc::ioctl(socket, libc::SIOCETHTOOL as _, &mut request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn request(&self) -> ifreq {
        // SAFETY: all of it are numbers and a pointer that nobody follows, for which zeros are right.
        let mut request: ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.name;
        request
    }

    /// One question; the answer lies in the union of the request.
    fn ask(&self, question: c_ulong) -> io::Result<ifreq> {
        let mut request = self.request();
        // SAFETY: these questions read and write one `ifreq`, which outlives the call.
        let answer = unsafe { libc::ioctl(self.socket.as_raw_fd(), question as _, &mut request) };
        match answer {
            0 => Ok(request),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn index(&self) -> io::Result<c_int> {
        let answer = self.ask(libc::SIOCGIFINDEX)?;
        // SAFETY: SIOCGIFINDEX answers with a number.
        Ok(unsafe { answer.ifr_ifru.ifru_ifindex })
    }

    fn mtu_bytes(&self) -> io::Result<usize> {
        let answer = self.ask(libc::SIOCGIFMTU)?;
        // SAFETY: SIOCGIFMTU answers with a number.
        let mtu_bytes = unsafe { answer.ifr_ifru.ifru_mtu };
        Ok(mtu_bytes.max(0) as usize)
    }

    fn flags(&self) -> io::Result<c_int> {
        let answer = self.ask(libc::SIOCGIFFLAGS)?;
        // SAFETY: SIOCGIFFLAGS answers with bits.
        Ok(c_int::from(unsafe { answer.ifr_ifru.ifru_flags }))
    }

    /// The kind of interface, and its address.
    fn hardware_address(&self) -> io::Result<(u16, [u8; 6])> {
        let answer = self.ask(libc::SIOCGIFHWADDR)?;
        // SAFETY: SIOCGIFHWADDR answers with an address.
        let address = unsafe { answer.ifr_ifru.ifru_hwaddr };
        let mac = std::array::from_fn(|i| address.sa_data[i] as u8);
        Ok((address.sa_family, mac))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_a_loopback() {
        let loopback = Interface::find("lo").expect("a loopback that is up");
        assert!(loopback.index > 0);
        assert_eq!(loopback.mac, [0; 6]);
        assert_eq!(loopback.frame_bytes_max(), loopback.mtu_bytes + 14);
    }

    #[test]
    fn an_interface_that_is_another_one_is_gone() {
        let loopback = Interface::find("lo").expect("a loopback that is up");
        let asker = Asker::new("lo").expect("a socket");
        assert_eq!(asker.link(loopback.index), LinkState::Up);
        assert_eq!(asker.link(loopback.index + 1), LinkState::Gone);
        let nobody = Asker::new("no-such-one").expect("a socket");
        assert_eq!(nobody.link(1), LinkState::Gone);
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        for name in ["no-such-one", "a-name-that-is-much-too-long"] {
            let error = Interface::find(name).expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
        let error = Interface::find("no-such-one").expect_err("not there");
        assert!(error.to_string().contains("`ip link`"), "{error}");
    }

    #[test]
    fn a_speed_that_is_not_known_is_none() {
        assert_eq!(speed_of("25000\n"), Some(25e9));
        for text in ["-1\n", "0", "4294967295", "", "fast"] {
            assert_eq!(speed_of(text), None, "{text}");
        }
    }
}
