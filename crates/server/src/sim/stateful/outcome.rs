//! What came of a simulation: counters, and whether all went well.

use std::collections::BTreeMap;

use allosaur_engine::stateful::{FlowTableCounters, GroupCounters};
use allosaur_engine::time::{Nanos, SECOND};
use serde::Serialize;
use serde_json::Value;

use crate::control::stateful::outcomes;
use crate::control::stateful::rows::{NamedRow, named};

use super::faults::Fault;
use super::link::LinkCounters;
use super::watch::LinkWatch;
use super::world::World;
use super::{Plan, Prepared};

/// What one side did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideOutcome {
    /// Flows that it began, or accepted.
    pub flows: u64,
    /// Flows that were still there at the end of patience.
    pub left: u64,
    /// Those of them that were in TIME-WAIT.
    pub left_in_time_wait: u64,
    /// Flows that were reset by either side.
    pub reset: u64,
    /// Flows that were refused, or given up for silence.
    pub given_up: u64,
    /// Bytes that its programs sent.
    pub sent_bytes: u64,
    /// Bytes that its programs received.
    pub received_bytes: u64,
    /// Clients: flows that were due and did not begin, late or without a free port.
    pub missed: u64,
    /// All rows of the table of counters.
    pub counters: Vec<NamedRow>,
}

/// What a template group counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupOutcome {
    /// Its name.
    pub name: String,
    /// All rows of its clients.
    pub client: Vec<NamedRow>,
    /// All rows of its servers.
    pub server: Vec<NamedRow>,
}

/// Whether all went well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether it did.
    pub ok: bool,
    /// What did not, in words.
    pub problems: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// How long it took, in virtual time.
    pub seconds: f64,
    /// Clients.
    pub client: SideOutcome,
    /// Servers.
    pub server: SideOutcome,
    /// What each template group counted.
    pub groups: Vec<GroupOutcome>,
    /// How flows ended, and how long they took, as `get_flow_outcomes` tells it.
    pub outcomes: Value,
    /// What the link did with frames to the servers.
    pub link_to_server: LinkCounters,
    /// What the link did with frames to the clients.
    pub link_to_client: LinkCounters,
    /// How often each fault was made, by its name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Whether all went well.
    pub verdict: Verdict,
}

impl Outcome {
    /// Reads a world that has stopped. `left` are the flows that there were before they were cut
    /// off, and those of them in TIME-WAIT.
    pub(super) fn of<W: LinkWatch>(
        world: &World<W>,
        prepared: &Prepared,
        plan: &Plan,
        left: [[usize; 2]; 2],
    ) -> Outcome {
        let totals = world.totals(prepared.profile.groups().len());
        let tables = world.flow_tables();
        let duration_s = seconds(world.passed());
        let side = |place: usize| {
            let left = left.map(|sides| sides[place]);
            SideOutcome::of(&totals[place], &tables[place], left, duration_s)
        };
        let [link_to_client, link_to_server] = world.links();
        let (client, server) = (side(0), side(1));
        Outcome {
            seconds: duration_s,
            verdict: judge(
                &client,
                &server,
                prepared.resets,
                plan.settings.is_disturbed(),
            ),
            client,
            server,
            groups: groups(world, prepared),
            outcomes: outcomes(world, prepared, &totals),
            link_to_server,
            link_to_client,
            faults: faults(world.faults()),
        }
    }
}

fn groups<W: LinkWatch>(world: &World<W>, prepared: &Prepared) -> Vec<GroupOutcome> {
    let no_table = FlowTableCounters::default();
    let duration_s = seconds(world.passed());
    let names = prepared.profile.groups().iter().zip(1..);
    let groups = names.map(|(name, number)| {
        let [client, server] = world.group(number);
        GroupOutcome {
            name: name.clone(),
            client: named(&client, &no_table, duration_s),
            server: named(&server, &no_table, duration_s),
        }
    });
    groups.collect()
}

fn outcomes<W: LinkWatch>(
    world: &World<W>,
    prepared: &Prepared,
    totals: &[GroupCounters; 2],
) -> Value {
    let names = prepared.profile.groups().iter().zip(1..);
    let groups = names.map(|(name, number)| {
        let sides = world.group(number);
        (name.as_str(), sides.map(|side| side.flows.outcomes))
    });
    let all = totals.each_ref().map(|side| &side.flows.outcomes);
    let rows = prepared.profile.application_rows();
    let sums = totals.each_ref().map(|side| side.flows.rows.to_vec());
    let applications = outcomes::applications(&rows, &sums);
    let told = outcomes::told(all, groups, &world.times(), applications);
    serde_json::to_value(&told).expect("it is a plain struct with string keys")
}

fn faults(counts: &[u64; Fault::COUNT]) -> BTreeMap<&'static str, u64> {
    let faults = Fault::ALL.iter().zip(counts);
    let made = faults.filter(|(_, count)| **count > 0);
    made.map(|(fault, count)| (fault.name(), *count)).collect()
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}

impl SideOutcome {
    fn of(
        group: &GroupCounters,
        table: &FlowTableCounters,
        [left, in_time_wait]: [usize; 2],
        duration_s: f64,
    ) -> SideOutcome {
        let (tcp, udp) = (&group.flows.tcp, &group.flows.udp);
        // Those that were silent from the beginning are among `conndrops` already.
        let silent = tcp.timeoutdrop + tcp.persistdrop + tcp.keepdrops;
        let silent = silent.min(tcp.drops);
        SideOutcome {
            flows: tcp.connattempt + tcp.accepts + udp.connects + udp.accepts,
            left: left as u64,
            left_in_time_wait: in_time_wait as u64,
            reset: tcp.drops - silent,
            given_up: tcp.conndrops + silent + udp.keepdrops,
            sent_bytes: tcp.sndbyte + udp.sndbyte,
            received_bytes: tcp.rcvbyte + udp.rcvbyte,
            missed: group.missed + table.err_c_tuple_err + table.err_flow_overflow,
            counters: named(group, table, duration_s),
        }
    }
}

fn judge(
    client: &SideOutcome,
    server: &SideOutcome,
    may_reset: bool,
    is_disturbed: bool,
) -> Verdict {
    let mut problems = Vec::new();
    if client.flows == 0 {
        problems.push("no flow began".to_owned());
    }
    for (name, side) in [("clients", client), ("servers", server)] {
        judge_flows(name, side, may_reset, &mut problems);
        if !is_disturbed && !may_reset {
            judge_counters(name, side, &mut problems);
        }
    }
    for (way, from, to) in [
        ("clients to servers", client, server),
        ("servers to clients", server, client),
    ] {
        let (sent, received) = (from.sent_bytes, to.received_bytes);
        if sent != received && !(may_reset && received < sent) {
            problems.push(format!("{way}: {sent} bytes sent, {received} delivered"));
        }
    }
    Verdict {
        ok: problems.is_empty(),
        problems,
    }
}

fn judge_flows(name: &str, side: &SideOutcome, may_reset: bool, problems: &mut Vec<String>) {
    let reset = if may_reset { 0 } else { side.reset };
    for (count, what) in [
        (side.left, "had not ended"),
        (side.missed, "could not begin"),
        (side.given_up, "were refused or given up"),
        (reset, "were reset"),
    ] {
        if count > 0 {
            problems.push(format!("{name}: {count} flows {what}"));
        }
    }
}

/// Counters of errors by TRex's table that programs may want: a flow without words is probed.
const PROBES: [&str; 2] = ["tcps_keeptimeo", "tcps_keepprobe"];

/// Where nothing disturbs, counters of errors are 0.
fn judge_counters(name: &str, side: &SideOutcome, problems: &mut Vec<String>) {
    let wrong = side.counters.iter();
    let wrong = wrong.filter(|row| row.is_error && row.value != 0 && !PROBES.contains(&row.name));
    let wrong: Vec<String> = wrong
        .map(|row| format!("{} {}", row.name, row.value))
        .collect();
    if !wrong.is_empty() {
        problems.push(format!("{name}: counters of errors: {}", wrong.join(", ")));
    }
}
