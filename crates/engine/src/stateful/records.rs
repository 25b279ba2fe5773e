//! What can be seen of flows, one by one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::flow_entry::FlowFlags;
use super::{RunIndex, StatefulEngine};
use crate::flow::{FlowKey, Prefixes};
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
    /// How long it has been there.
    pub duration: Nanos,
    /// How long ago something was heard last, in ms.
    pub heard_ago_ms: u32,
    /// Its connection.
    pub tcp: Info,
}

impl StatefulEngine {
    /// Shows all TCP flows of a profile that are not over. `now` is the time of the last turn.
    pub fn flow_records(&self, now: Nanos, run: RunIndex, mut each: impl FnMut(FlowRecord)) {
        let Some(Some(of)) = self.runs.get(usize::from(run.0)) else {
            return;
        };
        for index in self.flows.indices() {
            let entry = self.flows.at(index);
            let Some(entry) =
                entry.filter(|entry| entry.run == run && !entry.is(FlowFlags::Lingering))
            else {
                continue;
            };
            let Some(connection) = entry.session.connection() else {
                continue;
            };
            let template = of.profile.template(entry.template);
            let tunables = match entry.side() {
                Side::Client => &template.client.tunables.tcp,
                Side::Server => &template.server.tunables.tcp,
            };
            let tcp = connection.info(tunables);
            let now_ms = (now / MILLISECOND) as u32;
            let (local, remote) = ends(entry.session.key(), &self.pools.prefixes);
            each(FlowRecord {
                local,
                remote,
                side: entry.side(),
                template: entry.template,
                duration: Nanos::from(now_ms.wrapping_sub(entry.began_ms)) * MILLISECOND,
                heard_ago_ms: self.pools.tcp_ms(now).wrapping_sub(tcp.heard_ms),
                tcp,
            });
        }
    }
}

fn ends(key: &FlowKey, prefixes: &Prefixes) -> (SocketAddr, SocketAddr) {
    let long = key.prefixes;
    let long = long.and_then(|number| prefixes.addresses(number, key.local, key.remote));
    let (local, remote) = match long {
        Some((local, remote)) => (IpAddr::V6(local), IpAddr::V6(remote)),
        None => (
            IpAddr::V4(Ipv4Addr::from(key.local)),
            IpAddr::V4(Ipv4Addr::from(key.remote)),
        ),
    };
    (
        SocketAddr::new(local, key.local_port),
        SocketAddr::new(remote, key.remote_port),
    )
}
