//! Ports on the kernel's interfaces by AF_XDP: frames pass the kernel's network stack by.
//!
//! `open` opens a hardware queue; `transmit`, `receive` and `completions` are the queues of threads;
//! `mapping` and `ring` what is shared with the kernel; `socket`, `bpf` and `privileges` the system
//! calls; `attachment` our program on the interface; `checksum` what is left to hardware; `distribution` which
//! queue a frame arrives at.
//!
//! What arrives on a hardware queue goes to a socket of ours, by an XDP program that is on the
//! interface as long as the port is there. Each sending thread has a socket of its own. Where there
//! are fewer hardware queues than threads, sockets share one, with its memory and its completions.

mod attachment;
mod bpf;
mod checksum;
mod completions;
mod distribution;
mod mapping;
mod open;
mod privileges;
mod receive;
mod ring;
pub mod settings;
mod socket;
mod transmit;

use std::io;
use std::sync::Arc;

use allosaur_netdev::InterfaceError;
use allosaur_netdev::interface::{Interface, InterfaceControl};
use allosaur_packet::link::{ethernet, vlan};

use crate::distribution::RxDistribution;
use crate::kinds::kind_like;
use crate::{Capabilities, PortError, QueueCounts};
use attachment::Attachment;
use open::{OpenQueue, Plan, open_queue};
use receive::HardwareQueue;
use settings::{Choice, QUEUES_MAX, XdpSettings};

pub use receive::AfXdpRx;
pub use transmit::AfXdpTx;

/// What a frame and the room in front of it may take: a page of the smallest kind.
const CHUNK_BYTES_MAX: usize = 4096;
/// For frames of the usual MTU.
const CHUNK_BYTES_DEFAULT: usize = 2048;
/// What the kernel keeps free in front of a received frame (`XDP_PACKET_HEADROOM`).
const HEADROOM_BYTES: usize = 256;

/// A port on an interface: its queues, for the threads that will own them.
#[derive(Debug)]
pub struct AfXdpPort {
    /// One for each thread that sends.
    pub tx: Vec<AfXdpTx>,
    /// As many as were asked for, or one for each hardware queue.
    pub rx: Vec<AfXdpRx>,
    /// Which of them a frame arrives at.
    pub distribution: RxDistribution,
    /// The number of the interface whose frames keep their queue on the way here: the other end of a
    /// veth, where the driver runs the program. The kernel's own code does not know the queue.
    pub veth_peer: Option<i32>,
    /// For who decides about the interface.
    pub control: InterfaceControl,
    /// The interface.
    pub interface: Interface,
    /// What was chosen, in words.
    pub details: String,
    frame_bytes_max: usize,
}

impl AfXdpPort {
    /// Opens an interface by its name.
    ///
    /// # Errors
    ///
    /// Names the interface, what is wrong, and the remedy: see [`Interface::find`] and [`Interface::claim`]; when its MTU is
    /// too long, when it has another XDP program, when the driver does not offer what the settings
    /// demand, and when the system refuses a socket, its memory or the program.
    pub fn open(
        name: &str,
        settings: &XdpSettings,
        wanted: QueueCounts,
    ) -> Result<AfXdpPort, PortError> {
        let interface = Interface::find(name, kind_like(name))?;
        let claim = interface.claim()?;
        let plan = plan(&interface, settings, wanted)?;
        let attachment = Attachment::new(&interface, plan.queues as u32, settings.mode)?;
        if settings.zero_copy == Choice::Yes && !attachment.is_native {
            return Err(no_zero_copy(name).into());
        }
        let flags = bind_flags(settings, &attachment);
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::EINVAL) if settings.zero_copy == Choice::Yes => {
                no_zero_copy(name)
            }
            _ => refusal(name, &error),
        };
        let control = InterfaceControl::open(&interface, claim).map_err(refused)?;
        let open = |queue| open_queue(&interface, &control, queue, &plan, flags);
        let queues: Result<Vec<_>, _> = (0..plan.queues).map(open).collect();
        let queues = queues.map_err(refused)?;
        for (number, queue) in (0..).zip(&queues) {
            let started = queue.rx.start(number, settings.busy_poll, &attachment);
            started.map_err(refused)?;
        }
        let is_zero_copy = queues.iter().all(|queue| queue.is_zero_copy);
        let details = in_words(&plan, &attachment, is_zero_copy, settings.busy_poll);
        let (tx, groups) = share_out(queues, &plan);
        let is_native = attachment.is_native;
        let attachment = Arc::new(attachment);
        let receiver = |queues| {
            let attachment = Arc::clone(&attachment);
            AfXdpRx::new(queues, attachment, !is_zero_copy, settings.busy_poll)
        };
        let rx: Result<_, _> = groups.into_iter().map(receiver).collect();
        Ok(AfXdpPort {
            tx,
            rx: rx.map_err(refused)?,
            distribution: distribution::of_interface(&interface, plan.queues),
            veth_peer: interface.veth_peer().filter(|_| is_native),
            control,
            frame_bytes_max: plan.tagged_bytes_max - vlan::HEADER_BYTES,
            interface,
            details,
        })
    }
}

impl crate::Port for AfXdpPort {
    type Tx = AfXdpTx;
    type Rx = AfXdpRx;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            line_rate_bps: self.interface.line_rate_bps,
            frame_bytes_max: self.frame_bytes_max,
        }
    }

    fn into_queues(self) -> (Vec<AfXdpTx>, Vec<AfXdpRx>) {
        (self.tx, self.rx)
    }
}

/// How an interface's queues are used.
fn plan(
    interface: &Interface,
    settings: &XdpSettings,
    wanted: QueueCounts,
) -> Result<Plan, InterfaceError> {
    let tagged_bytes_max = interface.frame_bytes_max() + vlan::HEADER_BYTES;
    let chunk_bytes = [CHUNK_BYTES_DEFAULT, CHUNK_BYTES_MAX]
        .into_iter()
        .find(|chunk| tagged_bytes_max <= chunk - HEADROOM_BYTES);
    let Some(chunk_bytes) = chunk_bytes else {
        return Err(too_long(interface));
    };
    let there = interface.queues();
    let queues = settings.queues.unwrap_or(there.min(QUEUES_MAX));
    if queues > there {
        let name = &interface.name;
        return Err(InterfaceError::unusable(
            name,
            format!("it has {there} hardware queue(s), and queues={queues} asks for more"),
            format!("Ask for fewer, or make more where the driver can: ethtool -L {name}"),
        ));
    }
    Ok(Plan {
        queues,
        senders: wanted.tx,
        receivers: wanted.rx.min(queues),
        chunk_bytes,
        tagged_bytes_max,
    })
}

fn bind_flags(settings: &XdpSettings, attachment: &Attachment) -> u16 {
    let copy = match settings.zero_copy {
        Choice::Yes => libc::XDP_ZEROCOPY,
        Choice::No => libc::XDP_COPY,
        // Who runs the program in the kernel's own code has the frames there already.
        Choice::Auto if !attachment.is_native => libc::XDP_COPY,
        Choice::Auto => 0,
    };
    copy | libc::XDP_USE_NEED_WAKEUP
}

/// Transmit queues in the order of threads, and the hardware queues of each receiver.
fn share_out(queues: Vec<OpenQueue>, plan: &Plan) -> (Vec<AfXdpTx>, Vec<Vec<HardwareQueue>>) {
    let mut groups: Vec<Vec<_>> = (0..plan.receivers).map(|_| Vec::new()).collect();
    let mut senders = Vec::new();
    for (number, queue) in queues.into_iter().enumerate() {
        groups[number % plan.receivers].push(queue.rx);
        senders.push(queue.tx.into_iter());
    }
    let sender = |number: usize| senders[number % plan.queues].next();
    let tx = (0..plan.senders).map(sender);
    let tx = tx.map(|sender| sender.expect("each queue has those that the plan gives it"));
    (tx.collect(), groups)
}

/// What was chosen, for the user.
fn in_words(plan: &Plan, attachment: &Attachment, is_zero_copy: bool, busy_poll: bool) -> String {
    let mode = match (&attachment.why_generic, attachment.is_native) {
        (Some(error), _) => format!("generic XDP, as the driver takes no program ({error})"),
        (None, true) => "native XDP".to_owned(),
        (None, false) => "generic XDP".to_owned(),
    };
    let copies = if is_zero_copy { "zero copy" } else { "copy" };
    let queues = plan.queues;
    let many = if queues == 1 { "" } else { "s" };
    let shared = match plan.senders > queues {
        true => format!(", shared by {} threads that send", plan.senders),
        false => String::new(),
    };
    let busy_poll = if busy_poll { ", busy polling" } else { "" };
    format!("{mode}, {copies}, {queues} hardware queue{many}{shared}{busy_poll}")
}

fn too_long(interface: &Interface) -> InterfaceError {
    let (name, mtu_bytes) = (&interface.name, interface.mtu_bytes);
    let frame_bytes = CHUNK_BYTES_MAX - HEADROOM_BYTES;
    let mtu_bytes_max = frame_bytes - ethernet::HEADER_BYTES - vlan::HEADER_BYTES;
    InterfaceError::unusable(
        name,
        format!("its MTU of {mtu_bytes} is too long for AF_XDP, where it may be {mtu_bytes_max}"),
        format!("Lower it: ip link set {name} mtu {mtu_bytes_max}; or use af_packet:{name}"),
    )
}

fn no_zero_copy(name: &str) -> InterfaceError {
    InterfaceError::unusable(
        name,
        "its driver offers no zero copy".to_owned(),
        "Leave zero_copy=yes out: the kernel then copies frames",
    )
}

/// What the system's refusal means.
fn refusal(name: &str, error: &io::Error) -> InterfaceError {
    let (problem, remedy) = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => (
            privileges::missing(),
            "Start the server as root, or give it the capabilities: sudo setcap \
             cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep \"$(command -v allosaur-server)\""
                .to_owned(),
        ),
        Some(libc::ENOBUFS | libc::ENOMEM) => (
            "the system gives no more memory that stays in place".to_owned(),
            "Raise the limit (`ulimit -l`), give the server the capability CAP_IPC_LOCK, or use \
             fewer sending threads or queues"
                .to_owned(),
        ),
        Some(libc::EBUSY) => (
            "a hardware queue is taken by another program".to_owned(),
            "End that program, or use another interface".to_owned(),
        ),
        Some(libc::EAFNOSUPPORT) => (
            "this kernel was built without AF_XDP".to_owned(),
            format!("Use another kernel, or af_packet:{name}"),
        ),
        _ => (
            format!("the system refuses an AF_XDP socket or its program: {error}"),
            format!("Use af_packet:{name}, or another interface"),
        ),
    };
    InterfaceError::unavailable(name, problem, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(mtu_bytes: usize) -> Interface {
        Interface {
            name: "lo".to_owned(),
            index: 1,
            mac: [0; 6],
            mtu_bytes,
            line_rate_bps: 10e9,
            is_loopback: false,
        }
    }

    #[test]
    fn chunks_hold_the_longest_frame_and_its_headroom() {
        let chunk_bytes = |mtu_bytes| {
            let plan = plan(
                &interface(mtu_bytes),
                &XdpSettings::default(),
                QueueCounts::ONE,
            );
            plan.map(|plan| plan.chunk_bytes)
        };
        assert_eq!(chunk_bytes(1500), Ok(2048));
        assert_eq!(chunk_bytes(1774), Ok(2048));
        assert_eq!(chunk_bytes(1775), Ok(4096));
        assert_eq!(chunk_bytes(3822), Ok(4096));
        let error = chunk_bytes(3823).expect_err("too long").to_string();
        assert!(error.contains("ip link set lo mtu 3822"), "{error}");
    }

    #[test]
    fn more_queues_than_there_are_cannot_be_used() {
        let settings = "queues=64".parse().expect("well formed");
        let error = plan(&interface(1500), &settings, QueueCounts::ONE);
        let error = error.expect_err("a loopback has one").to_string();
        assert!(
            error.contains("queues=64") && error.contains("ethtool -L lo"),
            "{error}"
        );
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let settings = XdpSettings::default();
        let error = AfXdpPort::open("no-such-one", &settings, QueueCounts::ONE);
        let error = error.expect_err("not there").to_string();
        assert!(error.contains("'no-such-one'"), "{error}");
    }
}
