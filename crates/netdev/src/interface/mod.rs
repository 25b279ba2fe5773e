//! A network interface of the kernel, as far as a port must know it, and what is wrong with one
//! that cannot be used.

mod control;
mod counters;
mod rx_hash;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{c_char, c_int, c_ulong, ifreq};

use crate::claim::Claim;
use crate::{InterfaceError, names, netlink, socket};

pub use control::{InterfaceControl, LinkQuery};
pub use rx_hash::{FUNCTION_TOEPLITZ, RxHash, TRANSFORMATION_XOR};

/// The rate that an interface is said to have that does not say its own.
pub const NOMINAL_RATE_BPS: f64 = 10e9;

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
    /// The same, and another one has its name now: sockets stay with the one that is gone.
    Replaced,
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
            LinkState::Replaced => "the interface was removed and made anew",
        }
    }

    /// Whether the port stays without a link until the server is started anew.
    pub fn is_final(self) -> bool {
        matches!(self, LinkState::Gone | LinkState::Replaced)
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
    /// Names the interface and the remedy when it is not there, is down, or is not Ethernet. When
    /// it is not there and no interface has a name like it, `other_meaning` is offered instead.
    pub fn find(name: &str, other_meaning: Option<&str>) -> Result<Interface, InterfaceError> {
        let refused = |error: io::Error| {
            let problem = format!("the system does not tell about it: {error}");
            InterfaceError::unusable(name, problem, "Try again, or use another interface")
        };
        let query = InterfaceQuery::new(name).map_err(refused)?;
        let index = match query.index() {
            Ok(index) => index,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                return Err(missing(name, other_meaning));
            }
            Err(error) => return Err(refused(error)),
        };
        let (family, mac) = query.hardware_address().map_err(refused)?;
        if ![libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&family) {
            let problem = "it does not carry Ethernet frames";
            let remedy = "Use an Ethernet interface";
            return Err(InterfaceError::unusable(name, problem, remedy));
        }
        if query.flags().map_err(refused)? & libc::IFF_UP == 0 {
            let remedy = format!("Bring it up: ip link set {name} up");
            return Err(InterfaceError::unavailable(name, "it is down", remedy));
        }
        Ok(Interface {
            name: name.to_owned(),
            index,
            mac,
            mtu_bytes: query.mtu_bytes().map_err(refused)?,
            line_rate_bps: speed_bps(name).unwrap_or(NOMINAL_RATE_BPS),
            is_loopback: family == libc::ARPHRD_LOOPBACK,
        })
    }

    /// Keeps other servers from it; `None` on loopback, which is everybody's.
    ///
    /// # Errors
    ///
    /// Names the process that has it, as far as it is known.
    pub fn claim(&self) -> Result<Option<Claim>, InterfaceError> {
        if self.is_loopback {
            return Ok(None);
        }
        let claimed = Claim::interface(self.index).map(Some);
        claimed
            .map_err(|(problem, remedy)| InterfaceError::unavailable(&self.name, problem, remedy))
    }

    /// How many hardware queues it has, that both send and receive.
    pub fn queues(&self) -> usize {
        let found = InterfaceQuery::new(&self.name).and_then(|query| query.queues());
        found.ok().or_else(|| self.queues_listed()).unwrap_or(1)
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

    /// The number of the other end of a veth, where that is in the same network namespace.
    pub fn veth_peer(&self) -> Option<i32> {
        let links = netlink::links().ok()?;
        let link = links.into_iter().find(|link| link.index == self.index)?;
        link.peer.filter(|_| link.kind.as_deref() == Some("veth"))
    }

    /// The longest frame without a VLAN tag, in bytes without FCS.
    pub fn frame_bytes_max(&self) -> usize {
        self.mtu_bytes + libc::ETH_HLEN as usize
    }
}

/// The names of all interfaces in the network namespace of this process.
fn all_names() -> Vec<String> {
    names_in(&std::fs::read_to_string("/proc/net/dev").unwrap_or_default())
}

/// The names in the kernel's table of interfaces.
fn names_in(table: &str) -> Vec<String> {
    // Two lines of heads have no colon.
    let names = table.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

fn missing(name: &str, other_meaning: Option<&str>) -> InterfaceError {
    let mut known = all_names();
    if names::nearest(name, known.iter().map(String::as_str)).is_none() {
        known = other_meaning.map_or(known, |meaning| vec![meaning.to_owned()]);
    }
    let hint = names::suggestion(name, &known);
    let problem = match hint.is_empty() {
        true => "there is no such interface".to_owned(),
        false => format!("there is no such interface ({hint})"),
    };
    let remedy =
        "`allosaur ports` and `ip link` list the interfaces that are; other ports are memory";
    InterfaceError::unusable(name, problem, remedy)
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
struct InterfaceQuery {
    /// Any socket will do.
    socket: OwnedFd,
    name: [c_char; libc::IFNAMSIZ],
}

impl InterfaceQuery {
    fn new(name: &str) -> io::Result<InterfaceQuery> {
        let mut request_name = [0; libc::IFNAMSIZ];
        if name.len() >= libc::IFNAMSIZ {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request_name.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        let socket = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        Ok(InterfaceQuery {
            socket,
            name: request_name,
        })
    }

    /// How the link of the interface is that has the number `index`.
    fn link(&self, index: c_int) -> LinkState {
        match (self.index(), self.flags()) {
            (Ok(found), Ok(_)) if found != index => LinkState::Replaced,
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
        match unsafe { self.ethtool(&mut link) } {
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
        unsafe { self.ethtool(&mut channels)? };
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
    unsafe fn ethtool<T: ?Sized>(&self, question: &mut T) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_data = std::ptr::from_mut(question).cast();
        let socket = self.socket.as_raw_fd();
        // SAFETY: the kernel reads one `ifreq`, and for what it points to the caller answers; both
        // outlive the call.
        socket::succeeded(unsafe { libc::ioctl(socket, libc::SIOCETHTOOL as _, &mut request) })
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
        socket::succeeded(answer).map(|()| request)
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
        let loopback = Interface::find("lo", None).expect("a loopback that is up");
        assert!(loopback.index > 0);
        assert_eq!(loopback.mac, [0; 6]);
        assert_eq!(loopback.frame_bytes_max(), loopback.mtu_bytes + 14);
    }

    #[test]
    fn an_interface_that_is_another_one_is_gone() {
        let loopback = Interface::find("lo", None).expect("a loopback that is up");
        let query = InterfaceQuery::new("lo").expect("a socket");
        assert_eq!(query.link(loopback.index), LinkState::Up);
        assert_eq!(query.link(loopback.index + 1), LinkState::Replaced);
        let nobody = InterfaceQuery::new("no-such-one").expect("a socket");
        assert_eq!(nobody.link(1), LinkState::Gone);
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        for name in ["no-such-one", "a-name-that-is-much-too-long"] {
            let error = Interface::find(name, None).expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
        let error = Interface::find("no-such-one", None).expect_err("not there");
        assert!(error.to_string().contains("`ip link`"), "{error}");
    }

    #[test]
    fn another_meaning_is_offered_where_no_interface_is_near() {
        let error = Interface::find("memori", Some("memory")).expect_err("not there");
        assert!(error.problem.ends_with("(did you mean memory?)"), "{error}");
        let error = Interface::find("loo", Some("memory")).expect_err("not there");
        assert!(error.problem.ends_with("(did you mean lo?)"), "{error}");
    }

    #[test]
    fn names_are_those_of_the_kernels_table() {
        let heads = "Inter-|   Receive\n face |bytes    packets\n";
        let table = format!("{heads}    lo: 1 2 3\n  eth0.7: 4 5 6\n");
        assert_eq!(names_in(&table), ["lo", "eth0.7"]);
        assert!(all_names().contains(&"lo".to_owned()));
    }

    #[test]
    fn who_has_an_interface_is_named() {
        let loopback = Interface::find("lo", None).expect("a loopback that is up");
        assert!(loopback.claim().expect("everybody's").is_none());
        let own = Interface {
            name: "eth9".to_owned(),
            // No interface has such a number.
            index: i32::MAX - 3,
            is_loopback: false,
            ..loopback
        };
        let _claim = own.claim().expect("free");
        let text = own.claim().expect_err("taken").to_string();
        assert!(
            text.contains("'eth9': another port of this process"),
            "{text}"
        );
    }

    #[test]
    fn a_speed_that_is_not_known_is_none() {
        assert_eq!(speed_of("25000\n"), Some(25e9));
        for text in ["-1\n", "0", "4294967295", "", "fast"] {
            assert_eq!(speed_of(text), None, "{text}");
        }
    }
}
