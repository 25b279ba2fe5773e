//! Which thread has which queues of the ports.

use allosaur_engine::template::Side;
use allosaur_port::kind::{AnyPort, PortRx, PortTx};
use allosaur_port::memory;

use super::flows::FlowRx;
use crate::layout::Layout;
use crate::mailbox::Waker;

/// The queues of all ports, by the threads that own them, in stateless mode.
pub(super) struct Queues {
    /// Of each data thread, one of each port that it serves.
    pub(super) data: Vec<Vec<Option<PortTx>>>,
    /// What the first receive thread sends through, one of each port.
    pub(super) own: Vec<PortTx>,
    /// What the first receive thread reads, one of each port.
    pub(super) receive: Vec<PortRx>,
    /// What each other receive thread reads, one of each port that has so many.
    pub(super) gather: Vec<Vec<Option<PortRx>>>,
}

impl Queues {
    pub(super) fn share_out(ports: Vec<AnyPort>, layout: &Layout) -> Queues {
        let mut queues = Queues {
            data: layout.data.iter().map(|_| Vec::new()).collect(),
            own: Vec::new(),
            receive: Vec::new(),
            gather: layout.receive[1..].iter().map(|_| Vec::new()).collect(),
        };
        for (number, port) in ports.into_iter().enumerate() {
            let mut tx = port.tx.into_iter();
            for (thread, own) in layout.data.iter().zip(&mut queues.data) {
                let serves = thread.ports.contains(&number);
                own.push(if serves { tx.next() } else { None });
            }
            queues.own.extend(tx.next());
            let mut rx = port.rx.into_iter();
            queues.receive.extend(rx.next());
            for own in &mut queues.gather {
                own.push(rx.next());
            }
        }
        queues
    }
}

/// The queues of one data thread in stateful mode, one of each port that it serves.
#[derive(Default)]
pub(super) struct OwnQueues {
    /// What it sends through.
    pub(super) tx: Vec<Option<PortTx>>,
    /// What it reads.
    pub(super) rx: Vec<Option<FlowRx>>,
}

/// The queues of all ports, by the threads that own them, in stateful mode.
pub(super) struct FlowQueues {
    /// Of each data thread.
    pub(super) data: Vec<OwnQueues>,
    /// What the receive thread sends through, one of each port.
    pub(super) own: Vec<PortTx>,
    /// What the receive thread reads: a queue of each port that never gets anything.
    pub(super) nothing: Vec<PortRx>,
}

impl FlowQueues {
    /// `wakers` wake the data threads.
    pub(super) fn share_out(ports: Vec<AnyPort>, layout: &Layout, wakers: &[Waker]) -> FlowQueues {
        let mut queues = FlowQueues {
            data: layout.data.iter().map(|_| OwnQueues::default()).collect(),
            own: Vec::new(),
            nothing: Vec::new(),
        };
        for (number, port) in ports.into_iter().enumerate() {
            let mut tx = port.tx.into_iter();
            let cores = layout.cores_of(number);
            let mut rx = receivers(port.rx, number, &cores, wakers).into_iter();
            for (core, own) in queues.data.iter_mut().enumerate() {
                let serves = cores.contains(&core);
                own.tx.push(if serves { tx.next() } else { None });
                own.rx.push(if serves { rx.next() } else { None });
            }
            queues.own.extend(tx.next());
            queues.nothing.push(PortRx::Memory(memory::sink(0).rx));
        }
        queues
    }
}

/// What each of a port's data threads reads: a queue of its own where there are enough, else its
/// share of the one that there is, which the first of them reads.
fn receivers(
    mut queues: Vec<PortRx>,
    port: usize,
    cores: &[usize],
    wakers: &[Waker],
) -> Vec<FlowRx> {
    if queues.len() >= cores.len() {
        return queues.into_iter().map(FlowRx::Whole).collect();
    }
    let others = cores[1..].iter().map(|core| wakers[*core].clone());
    let side = if port % 2 == 0 {
        Side::Client
    } else {
        Side::Server
    };
    FlowRx::share_out(queues.swap_remove(0), others.collect(), side)
}
