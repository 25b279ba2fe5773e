//! Our XDP program on an interface: it hands what arrives to our sockets.

use std::io;
use std::os::fd::BorrowedFd;

use allosaur_netdev::interface::Interface;
use allosaur_netdev::{InterfaceError, netlink};

use super::bpf::{self, Link, Program, SocketMap};
use super::settings::Mode;

/// Of an attachment: in the kernel's own code, or in the driver (`include/uapi/linux/if_link.h`).
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
/// The first Linux that ties programs to interfaces by links.
const LINUX_WITH_LINKS: (u32, u32) = (5, 9);

/// The program on an interface. It is taken off when this is dropped, and when the process ends,
/// however it ends: the kernel keeps it as long as the link's descriptor is open.
#[derive(Debug)]
pub(super) struct Attachment {
    sockets: SocketMap,
    _program: Program,
    _link: Link,
    /// Whether the driver runs it.
    pub(super) is_native: bool,
    /// Why the driver does not, when it was asked to.
    pub(super) why_generic: Option<io::Error>,
}

impl Attachment {
    /// Puts the program on an interface, for hardware queues 0 to `queues - 1`. Until sockets are
    /// named the kernel gets all frames, as before.
    pub(super) fn new(
        interface: &Interface,
        queues: u32,
        mode: Mode,
    ) -> Result<Attachment, InterfaceError> {
        let name = &interface.name;
        check_kernel(name)?;
        check_free(interface)?;
        let refused = |error: io::Error| super::refusal(name, &error);
        let sockets = SocketMap::new(queues).map_err(refused)?;
        let program = Program::load(&sockets).map_err(refused)?;
        let attach = |flags| program.attach(interface.index, flags);
        let (link, why_generic) = match mode {
            Mode::Generic => (attach(XDP_FLAGS_SKB_MODE), None),
            Mode::Native => (attach(XDP_FLAGS_DRV_MODE), None),
            Mode::Auto => match attach(XDP_FLAGS_DRV_MODE) {
                Err(error) if may_be_generic(&error) => (attach(XDP_FLAGS_SKB_MODE), Some(error)),
                attached => (attached, None),
            },
        };
        let is_native = mode != Mode::Generic && why_generic.is_none();
        let link = link.map_err(|error| match error.raw_os_error() {
            // It came since we looked.
            Some(libc::EBUSY | libc::EEXIST) => taken(name, program_on(interface)),
            _ if mode == Mode::Native => no_native(name, &error),
            _ => refused(error),
        })?;
        Ok(Attachment {
            sockets,
            _program: program,
            _link: link,
            is_native,
            why_generic,
        })
    }

    /// What arrives on a hardware queue goes to this socket from now on.
    pub(super) fn hand_to(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.sockets.set(queue, socket)
    }
}

/// Whether the kernel's own code may do what the driver would not.
fn may_be_generic(error: &io::Error) -> bool {
    let not_about_the_driver = [libc::EBUSY, libc::EEXIST, libc::EPERM, libc::ENODEV];
    let code = error.raw_os_error();
    code.is_some_and(|code| !not_about_the_driver.contains(&code))
}

fn no_native(name: &str, error: &io::Error) -> InterfaceError {
    InterfaceError::unusable(
        name,
        format!("its driver takes no XDP program: {error}"),
        "Leave mode=native out, so that the kernel's own code runs it; or, on veth, give it at least \
         as many receive queues as the other end has transmit queues, and an MTU up to 3500",
    )
}

/// Refuses an interface that has a program already: replacing it would break whose it is.
fn check_free(interface: &Interface) -> Result<(), InterfaceError> {
    match program_on(interface) {
        None => Ok(()),
        program => Err(taken(&interface.name, program)),
    }
}

/// The number of the XDP program on an interface, if there is one and the kernel tells.
fn program_on(interface: &Interface) -> Option<u32> {
    let links = netlink::links().ok()?;
    let link = links.iter().find(|link| link.index == interface.index)?;
    link.xdp
}

fn taken(name: &str, program: Option<u32>) -> InterfaceError {
    let program = program.map_or("a program".to_owned(), |id| match bpf::name_of(id) {
        Some(program) => format!("the program '{program}' (id {id})"),
        None => format!("a program (id {id})"),
    });
    InterfaceError::unavailable(
        name,
        format!("{program} has its XDP already, of another server or another tool"),
        format!(
            "End what has put it there (`bpftool net` tells more), or take it off: ip link set dev \
             {name} xdp off; or use af_packet:{name}"
        ),
    )
}

fn check_kernel(name: &str) -> Result<(), InterfaceError> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    match version_of(&release) {
        Some(version) if version < LINUX_WITH_LINKS => {
            let problem = format!("Linux {} is too old for AF_XDP ports", release.trim());
            let remedy = format!("Use Linux 5.9 or newer, or af_packet:{name}");
            Err(InterfaceError::unusable(name, problem, &remedy))
        }
        // What says nothing of itself is tried.
        _ => Ok(()),
    }
}

fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        let versions = [
            "4.19.0-27-amd64",
            "5.8.18\n",
            "5.9.0-rc1",
            "5.10",
            "6.18.44-x",
        ];
        let versions = versions.map(|text| version_of(text).expect("a version"));
        assert!(versions.is_sorted());
        let new = versions.map(|version| version >= LINUX_WITH_LINKS);
        assert_eq!(new, [false, false, true, true, true]);
        assert_eq!(version_of(""), None);
    }

    #[test]
    fn an_interface_that_is_taken_is_named_with_the_remedy() {
        let error = taken("eth7", Some(1_234_567_890)).to_string();
        for words in ["'eth7'", "(id 1234567890)", "ip link set dev eth7 xdp off"] {
            assert!(error.contains(words), "{error}");
        }
    }
}
