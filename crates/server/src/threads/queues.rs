//! Which thread has which queues of the ports.

use allosaur_port::kind::{PortRx, PortTx};
use allosaur_port::open::AnyPort;

use super::data::{FlowRx, RxQueues};
use super::flow_sharing::FlowSharing;
use crate::threads::layout::{Layout, rule_of, side_of};
use crate::threads::waker::Waker;

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
            let (flow_rx, rx) = match layout.is_stateful {
                true => {
                    let has_own = FlowSharing::of(&port, number, cores.len()).has_own_queues();
                    let flow_rx = flow_queues(port.rx, has_own, number, &cores, wakers);
                    (flow_rx, Vec::new())
                }
                false => (Vec::new(), port.rx),
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

/// What the flows of each of a port's data threads read: its own queue, where each `has_own` that gets
/// the frames of its flows; else its share of all that there are, which the first of them reads.
pub(super) fn flow_queues(
    queues: Vec<PortRx>,
    has_own: bool,
    port: usize,
    cores: &[usize],
    wakers: &[Waker],
) -> Vec<FlowRx> {
    let Some((_, others)) = cores.split_first() else {
        return Vec::new();
    };
    if others.is_empty() {
        return vec![FlowRx::Whole(RxQueues(queues))];
    }
    if has_own && queues.len() == cores.len() {
        return queues
            .into_iter()
            .map(|queue| FlowRx::Whole(queue.into()))
            .collect();
    }
    let others = others.iter().map(|core| wakers[*core].clone());
    FlowRx::share_out(RxQueues(queues), others.collect(), rule_of(side_of(port)))
}

/// Whether queues are rings of peers, which stay with the threads that write them.
pub(super) fn are_in_memory(queues: &[PortRx]) -> bool {
    queues.iter().all(PortRx::is_memory)
}
