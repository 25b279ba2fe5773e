//! Packet groups: which of them there are, and the counters of each.
//!
//! What lives here: giving the user's groups a place among those of the engine for as long as
//! they have streams, and their counters and rates since then. What does not: counting.
//!
//! Counters of the engine's places only grow. A group that is made anew begins at zero: it
//! remembers what its place had, and a place that was given back is the last to be given again,
//! so that packets that are still under way find nobody.

use std::collections::{BTreeMap, VecDeque};

use allosaur_api::Fields;
use allosaur_api::commands::groups::{ActivePgids, GroupStats, pgids};
use allosaur_api::commands::streams::stream::{FlowStats, RuleType};
use allosaur_api::commands::traffic::ProfileParams;
use allosaur_engine::flow_stats::{FLOW_GROUPS, Group, GroupCounters, Rule};
use allosaur_engine::time::{MILLISECOND, Nanos};
use serde_json::{Map, Value, json};

use super::{Control, Reply, View, reply};
use crate::counters::GroupTraffic;

/// Readings that follow each other faster are left out, as for the rates of ports.
const READING_GAP_MIN: Nanos = 250 * MILLISECOND;
/// Readings kept: two intervals.
const READINGS: usize = 3;

/// The packet groups of all streams.
#[derive(Debug)]
pub(super) struct Groups {
    active: BTreeMap<u32, Active>,
    free: VecDeque<Group>,
    versions: u64,
    ports: usize,
}

/// A group that has streams.
#[derive(Debug)]
struct Active {
    group: Group,
    streams: usize,
    version: u64,
    /// What its place had counted before, by port.
    before: Vec<GroupTraffic>,
    readings: VecDeque<(Nanos, Vec<GroupTraffic>)>,
}

impl Groups {
    pub(super) fn new(ports: usize) -> Groups {
        Groups {
            active: BTreeMap::new(),
            free: (0..FLOW_GROUPS).filter_map(Group::flow).collect(),
            versions: 0,
            ports,
        }
    }

    /// A stream joins a group, which is made if it is not there.
    pub(super) fn join(&mut self, counted: &FlowStats, view: &View<'_>) -> Result<Rule, String> {
        if let Some(problem) = not_supported(counted) {
            return Err(problem);
        }
        let group = match self.active.get_mut(&counted.pg_id) {
            Some(active) => {
                active.streams += 1;
                active.group
            }
            None => self.make(counted.pg_id, view)?,
        };
        let vxlan = counted.vxlan;
        Ok(Rule { group, vxlan })
    }

    fn make(&mut self, pg_id: u32, view: &View<'_>) -> Result<Group, String> {
        let group = self.free.pop_front().ok_or_else(|| {
            format!(
                "field 'flow_stats.stream_id' is {pg_id}, one more than the {FLOW_GROUPS} packet \
                 groups that can be counted at once: let streams share one, or remove others"
            )
        })?;
        self.versions += 1;
        let active = Active {
            group,
            streams: 1,
            version: self.versions,
            before: traffic(group, self.ports, view),
            readings: VecDeque::new(),
        };
        self.active.insert(pg_id, active);
        Ok(group)
    }

    /// A stream leaves its group, if it was in one. The last one ends it.
    pub(super) fn leave(&mut self, pg_id: Option<u32>) {
        let Some((pg_id, active)) = pg_id.and_then(|id| Some((id, self.active.get_mut(&id)?)))
        else {
            return;
        };
        active.streams -= 1;
        if active.streams == 0 {
            self.free.push_back(active.group);
            self.active.remove(&pg_id);
        }
    }

    /// Takes a reading of all groups, for their rates.
    pub(super) fn read(&mut self, view: &View<'_>) {
        for active in self.active.values_mut() {
            let last = active.readings.back();
            if last.is_some_and(|(at, _)| view.now_ns.saturating_sub(*at) < READING_GAP_MIN) {
                continue;
            }
            if active.readings.len() == READINGS {
                active.readings.pop_front();
            }
            let reading = traffic(active.group, self.ports, view);
            active.readings.push_back((view.now_ns, reading));
        }
    }
}

impl Active {
    fn stats(&self, view: &View<'_>) -> GroupStats {
        let mut stats = GroupStats::default();
        for (port, before) in self.before.iter().enumerate() {
            let now = view.groups.group(port, self.group);
            let (sent, received) = (
                now.sent.since(before.sent),
                now.received.since(before.received),
            );
            stats.tp.insert(port, sent.packets);
            stats.tb.insert(port, sent.bytes);
            stats.rp.insert(port, received.packets);
            stats.rb.insert(port, received.bytes);
            let (tps, tbs) = self.rates(port, |traffic| traffic.sent);
            stats.tps.insert(port, tps);
            stats.tbs.insert(port, tbs);
            let (rps, rbs) = self.rates(port, |traffic| traffic.received);
            stats.rps.insert(port, rps);
            stats.rbs.insert(port, rbs);
        }
        stats
    }

    /// Packets and bits a second between the oldest and the newest reading.
    fn rates(&self, port: usize, of: impl Fn(&GroupTraffic) -> GroupCounters) -> (f64, f64) {
        let (Some((from, old)), Some((until, new))) = (self.readings.front(), self.readings.back())
        else {
            return (0.0, 0.0);
        };
        let seconds = until.saturating_sub(*from) as f64 / 1e9;
        if seconds <= 0.0 {
            return (0.0, 0.0);
        }
        let counted = of(&new[port]).since(of(&old[port]));
        let per_second = |n: u64| (n as f64 / seconds * 100.0).round() / 100.0;
        (per_second(counted.packets), per_second(counted.bytes * 8))
    }
}

/// What was counted of a group, by port.
fn traffic(group: Group, ports: usize, view: &View<'_>) -> Vec<GroupTraffic> {
    (0..ports)
        .map(|port| view.groups.group(port, group))
        .collect()
}

fn not_supported(counted: &FlowStats) -> Option<String> {
    let (field, value) = match counted.rule {
        RuleType::Latency => ("rule_type", "'latency'"),
        RuleType::Tagged => ("rule_type", "'tpg'"),
        RuleType::Stats if counted.ieee_1588 => ("ieee_1588", "true"),
        RuleType::Stats => return None,
    };
    Some(format!(
        "field 'flow_stats.{field}' is {value}, which is not supported yet: use rule_type 'stats'"
    ))
}

impl Control {
    pub(super) fn active_pgids(&self) -> Reply {
        let mut reply_of = ActivePgids::default();
        reply_of.ids.flow_stats = self.groups.active.keys().copied().collect();
        reply(&reply_of)
    }

    pub(super) fn pgid_stats(&self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let wanted = pgids(fields)?;
        let groups = self.groups.active.iter();
        let groups =
            groups.filter(|(id, _)| wanted.is_empty() || wanted.contains(&u64::from(**id)));
        let (mut stats, mut versions) = (Map::new(), Map::new());
        for (pg_id, active) in groups {
            stats.insert(pg_id.to_string(), reply(&active.stats(view))?);
            versions.insert(pg_id.to_string(), json!(active.version));
        }
        Ok(json!({
            "flow_stats": or_null(stats), "latency": {"g": null}, "ver_id": or_null(versions),
        }))
    }

    pub(super) fn remove_rx_filters(&self, fields: &Fields<'_>) -> Reply {
        let params = ProfileParams::parse(fields)?;
        let port = self.port(params.port)?;
        for name in port.profile_names(&params.profile)? {
            let profile = port.profile(&name)?;
            profile.check_not_transmitting("remove_rx_filters", &name)?;
        }
        Ok(json!({}))
    }
}

fn or_null(map: Map<String, Value>) -> Value {
    if map.is_empty() {
        Value::Null
    } else {
        Value::Object(map)
    }
}
