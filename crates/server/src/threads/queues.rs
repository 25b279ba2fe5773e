//! Which thread has which queues of the ports.

use allosaur_engine::template::Side;
use allosaur_port::kind::{AnyPort, PortRx, PortTx};

use super::data::FlowRx;
use crate::layout::Layout;
use crate::waker::Waker;

/// The queues of one data thread, one of each port that it serves.
#[derive(Default)]
pub(super) struct DataQueues {
    /// What it sends through.
    pub(super) tx: Vec<Option<PortTx>>,
    /// What its flows read.
    pub(super) rx: Vec<Option<FlowRx>>,
}

/// The queues of all ports, by the threads that own them.
pub(super) struct Queues {
    /// Of each data thread.
    pub(super) data: Vec<DataQueues>,
    /// What the first receive thread sends through, one of each port.
    pub(super) receive_tx: Vec<PortTx>,
    /// What each receive thread reads, one of each port that has so many for it.
    pub(super) receive: Vec<Vec<Option<PortRx>>>,
}

impl Queues {
    /// Shares the queues out; `wakers` wake the data threads.
    pub(super) fn share_out(ports: Vec<AnyPort>, layout: &Layout, wakers: &[Waker]) -> Queues {
        let mut queues = Queues {
            data: layout.data.iter().map(|_| DataQueues::default()).collect(),
            receive_tx: Vec::new(),
            receive: layout.receive.iter().map(|_| Vec::new()).collect(),
        };
        for (number, port) in ports.into_iter().enumerate() {
            let cores = layout.cores_of(number);
            let (flow_rx, rx) = match layout.read {
                Some(_) => (share_rx(port.rx, number, &cores, wakers), Vec::new()),
                None => (Vec::new(), port.rx),
            };
            let (mut tx, mut flow_rx) = (port.tx.into_iter(), flow_rx.into_iter());
            for (core, own) in queues.data.iter_mut().enumerate() {
                let serves = cores.contains(&core);
                own.tx.push(if serves { tx.next() } else { None });
                own.rx.push(if serves { flow_rx.next() } else { None });
            }
            queues.receive_tx.extend(tx.next());
            let mut rx = rx.into_iter();
            for own in &mut queues.receive {
                own.push(rx.next());
            }
        }
        queues
    }
}

/// What the flows of each of a port's data threads read: a queue of its own where there are enough,
/// else its share of the one that there is, which the first of them reads.
fn share_rx(
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
