//! What can be seen of flows, one by one.

use std::net::SocketAddr;

use super::entry::FlowFlags;
use super::{RunIndex, StatefulEngine};
use crate::flow::FlowKey;
use crate::session::BeginTime;
use crate::tcp::Info;
use crate::template::{Side, TemplateIndex};
use crate::time::{MILLISECOND, Nanos};

/// A look at a TCP flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// Our end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Which side of it is ours.
    pub side: Side,
    /// The template that it belongs to.
    pub template: TemplateIndex,
    /// How long it has been there, in whole milliseconds.
    pub duration: Nanos,
    /// How long ago something was heard last, in ms.
    pub heard_ago_ms: u32,
    /// Its connection.
    pub tcp: Info,
}

impl StatefulEngine {
    /// Shows all TCP flows of a profile that are not over; those in TIME-WAIT that have nothing else
    /// to do come last, as [`TimeWait::info`](crate::tcp::TimeWait::info) shows them. `now` is the time of the last turn.
    pub fn flow_records(&self, now: Nanos, run: RunIndex, mut each: impl FnMut(FlowRecord)) {
        let Some(Some(of)) = self.runs.get(usize::from(run.0)) else {
            return;
        };
        let mut show =
            |key: &FlowKey, whose: (TemplateIndex, Side), began: BeginTime, tcp: Info| {
                let (local, remote) = key.endpoints(&self.pools.spaces);
                each(FlowRecord {
                    local,
                    remote,
                    side: whose.1,
                    template: whose.0,
                    duration: began.since(now) / MILLISECOND * MILLISECOND,
                    heard_ago_ms: self.pools.tcp_ms(now).wrapping_sub(tcp.last_received_ms),
                    tcp,
                });
            };
        let entries = self
            .flows
            .indices()
            .filter_map(|index| self.flows.at(index));
        let entries = entries.filter(|entry| entry.run == run && !entry.is(FlowFlags::Lingering));
        for entry in entries {
            let (template, side) = (entry.template, entry.side());
            if let Some(connection) = entry.session.connection() {
                let tunables = &of.tunables(template, side).tcp;
                let tcp = connection.info(tunables, &self.pools.recovery);
                let key = entry.session.key();
                show(key, (template, side), entry.session.begin_time(), tcp);
            }
        }
        let waiting = self.time_wait.indices();
        let waiting = waiting.filter_map(|index| self.time_wait.at(index));
        for rest in waiting.filter(|rest| rest.run() == run && !rest.is_lingering()) {
            let (template, side) = (rest.template(of), rest.side());
            let tcp = rest.session().info(&of.tunables(template, side).tcp);
            show(&rest.key(), (template, side), rest.begin_time(), tcp);
        }
    }
}
