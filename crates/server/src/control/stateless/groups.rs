//! Packet groups: which of them there are, and the counters of each.
//!
//! Counters of the engine's places only grow. A group that is made anew begins at zero: it
//! remembers what its place had, and a place that was given back is the last to be given again,
//! so that packets that are still under way find nobody.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use allosaur_api::commands::groups::{GroupLatency, GroupStats, LatencyTimes, SequenceErrors};
use allosaur_api::commands::streams::stream::{FlowStats, RuleType};
use allosaur_engine::flow_stats::{FLOW_GROUPS, Group, LATENCY_GROUPS, PacketGroupCounters, Rule};
use allosaur_engine::latency::meter::bucket_usec;
use allosaur_engine::stream::StreamId;
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};

use super::port::{Profile, StreamPort};
use crate::control::config::View;
use crate::control::percentiles::{Percentiles, hundredths_of_usec};
use crate::counters::GroupTraffic;
use crate::metrics::CatalogGroup;

/// Readings that follow each other faster are left out, as for the rates of ports.
const READING_GAP_MIN: Nanos = 250 * MILLISECOND;
/// Readings kept: two intervals.
const READINGS: usize = 3;

/// The packet groups of all streams.
#[derive(Debug)]
pub(in crate::control) struct Groups {
    pub(super) active: BTreeMap<u32, Active>,
    free: VecDeque<Group>,
    free_latency: VecDeque<Group>,
    versions: u32,
    ports: usize,
}

/// A group that has streams.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) group: Group,
    /// How many streams of which profiles it has, by port.
    streams: BTreeMap<Member, usize>,
    /// The names of those profiles, each once.
    profiles: Arc<str>,
    pub(super) version: u32,
    /// What its place had counted before, by port.
    before: Arc<[GroupTraffic]>,
    readings: VecDeque<(Nanos, Vec<GroupTraffic>)>,
}

/// A port, and a profile that it has.
type Member = (u8, String);

impl Groups {
    pub(super) fn new(ports: usize) -> Groups {
        Groups {
            active: BTreeMap::new(),
            free: (0..FLOW_GROUPS).filter_map(Group::flow).collect(),
            free_latency: (0..LATENCY_GROUPS).filter_map(Group::latency).collect(),
            versions: 0,
            ports,
        }
    }

    /// A stream of a member joins a group, which is made if it is not there. `ports` say who is in
    /// it.
    pub(super) fn join(
        &mut self,
        counted: &FlowStats,
        member: Member,
        ports: &[StreamPort],
        view: &View<'_>,
    ) -> Result<Rule, String> {
        if let Some(problem) = not_supported(counted) {
            return Err(problem);
        }
        match self.active.get(&counted.pg_id) {
            Some(active) => check_shared(active, counted, ports)?,
            None => self.make(counted, view)?,
        }
        let active = self.active.get_mut(&counted.pg_id);
        let active = active.expect("it was there, or was just made");
        active.add(member);
        let group = active.group;
        let vxlan = counted.vxlan;
        let run = 0;
        Ok(Rule { group, vxlan, run })
    }

    fn make(&mut self, counted: &FlowStats, view: &View<'_>) -> Result<(), String> {
        let pg_id = counted.pg_id;
        let (free, places) = match counted.rule {
            RuleType::Latency => (&mut self.free_latency, LATENCY_GROUPS),
            RuleType::Stats | RuleType::Tagged => (&mut self.free, FLOW_GROUPS),
        };
        let group = free.pop_front().ok_or_else(|| {
            format!(
                "field 'flow_stats.stream_id' is {pg_id}, one more than the {places} packet \
                 groups of its rule_type that there can be at once: remove others first"
            )
        })?;
        self.versions += 1;
        let active = Active {
            group,
            streams: BTreeMap::new(),
            profiles: Arc::from(""),
            version: self.versions,
            before: traffic(group, self.ports, view).into(),
            readings: VecDeque::new(),
        };
        self.active.insert(pg_id, active);
        Ok(())
    }

    /// A stream of a member leaves its group, if it was in one. The last one ends it.
    pub(super) fn leave(&mut self, pg_id: Option<u32>, member: &Member) {
        let Some((pg_id, active)) = pg_id.and_then(|id| Some((id, self.active.get_mut(&id)?)))
        else {
            return;
        };
        active.remove(member);
        if active.streams.is_empty() {
            let free = match active.group.is_latency() {
                true => &mut self.free_latency,
                false => &mut self.free,
            };
            free.push_back(active.group);
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

    /// All of them, for those who read their counters.
    pub(super) fn catalog(&self) -> Vec<CatalogGroup> {
        let groups = self.active.iter();
        let entry = |(pg_id, active): (&u32, &Active)| CatalogGroup {
            pg_id: *pg_id,
            group: active.group,
            version: active.version,
            before: Arc::clone(&active.before),
            profiles: Arc::clone(&active.profiles),
            senders: active
                .streams
                .keys()
                .fold(0, |all, (port, _)| all | 1 << port),
        };
        groups.map(entry).collect()
    }
}

/// Groups of one kind may have several streams; latency is of one stream only.
fn check_shared(active: &Active, counted: &FlowStats, ports: &[StreamPort]) -> Result<(), String> {
    let pg_id = counted.pg_id;
    let wants_latency = counted.rule == RuleType::Latency;
    if wants_latency != active.group.is_latency() {
        return Err(format!(
            "field 'flow_stats.stream_id' is {pg_id}, which {} has with another rule_type: \
             choose another number",
            user_of(pg_id, ports)
        ));
    }
    if wants_latency {
        return Err(format!(
            "field 'flow_stats.stream_id' is {pg_id}, which {} has: a number for latency belongs \
             to one stream, choose another",
            user_of(pg_id, ports)
        ));
    }
    Ok(())
}

/// A stream of a group, in words.
fn user_of(pg_id: u32, ports: &[StreamPort]) -> String {
    let of_profile = |profile: &Profile| -> Option<StreamId> {
        let mut streams = profile.streams.iter();
        let found = streams.find(|(_, stream)| stream.pg_id == Some(pg_id));
        found.map(|(id, _)| *id)
    };
    let all = ports.iter().enumerate();
    let mut profiles = all.flat_map(|(port, found)| {
        let profiles = found.profiles.iter();
        profiles.map(move |(name, profile)| (port, name, profile))
    });
    let found = profiles.find_map(|(port, name, profile)| Some((port, name, of_profile(profile)?)));
    let (port, name, stream) = found.expect("a group that is active has a stream");
    format!("stream {stream} of profile_id({name}) on port {port}")
}

impl Active {
    fn add(&mut self, member: Member) {
        let streams = self.streams.entry(member).or_insert(0);
        *streams += 1;
        if *streams == 1 {
            self.name_profiles();
        }
    }

    fn remove(&mut self, member: &Member) {
        let Some(streams) = self.streams.get_mut(member) else {
            return;
        };
        *streams -= 1;
        if *streams == 0 {
            self.streams.remove(member);
            self.name_profiles();
        }
    }

    fn name_profiles(&mut self) {
        let names = self.streams.keys().map(|(_, profile)| profile.as_str());
        let names: Vec<&str> = names.collect::<BTreeSet<_>>().into_iter().collect();
        self.profiles = names.join(",").into();
    }

    pub(super) fn stats(&self, view: &View<'_>) -> GroupStats {
        let mut stats = GroupStats::default();
        for (port, before) in self.before.iter().enumerate() {
            let now = view.groups.group(port, self.group);
            let (sent, received) = (
                now.sent.since(before.sent),
                now.received.since(before.received),
            );
            stats.tp.insert(port, sent.packets);
            stats.tb.insert(port, sent.bytes);
            stats.missed.insert(port, sent.missed_packets);
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

    /// What was measured of it, as the RPC has it; nothing before the first packet.
    pub(super) fn latency(
        &self,
        percentiles: &mut Percentiles,
        view: &View<'_>,
    ) -> Option<GroupLatency> {
        if !self.group.is_latency() {
            return None;
        }
        let (n, version) = (self.group.wire_id(), self.version);
        let stats = view.groups.latency(n, version)?;
        let usec = |ns: Nanos| ns / MICROSECOND;
        let mean_ns = stats.sum_ns.checked_div(stats.packets).unwrap_or(0);
        let buckets = stats.histogram.iter().enumerate().filter(|(_, n)| **n > 0);
        let mut lat = LatencyTimes {
            packets: stats.packets,
            sum_ns: stats.sum_ns,
            average: hundredths_of_usec(mean_ns),
            total_min: usec(stats.min_ns),
            total_max: usec(stats.max_ns),
            min: hundredths_of_usec(stats.min_ns),
            max: hundredths_of_usec(stats.max_ns),
            last_max: usec(stats.last_max_ns),
            jit: usec(stats.jitter_ns),
            histogram: buckets
                .map(|(i, n)| (bucket_usec(i).to_string(), *n))
                .collect(),
            ..LatencyTimes::default()
        };
        if let Some(times) = view.groups.latency_times(n, version, &stats) {
            percentiles.describe(&times, &mut lat);
        }
        let errors = SequenceErrors {
            drp: stats.dropped,
            ooo: stats.out_of_order,
            dup: stats.duplicates,
            sth: stats.sequence_too_high,
            stl: stats.sequence_too_low,
            imp: stats.impossible_times,
        };
        let er = (errors != SequenceErrors::default()).then_some(errors);
        Some(GroupLatency { lat, er })
    }

    /// Packets and bits a second between the oldest and the newest reading.
    fn rates(&self, port: usize, of: impl Fn(&GroupTraffic) -> PacketGroupCounters) -> (f64, f64) {
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
        RuleType::Tagged => ("rule_type", "'tpg'"),
        _ if counted.ieee_1588 => ("ieee_1588", "true"),
        _ => return None,
    };
    Some(format!(
        "field 'flow_stats.{field}' is {value}, which is not supported yet: use rule_type 'stats' or 'latency', and \
         ieee_1588 false"
    ))
}
