//! What an end of a flow takes of memory: as the documentation says, and not a byte more.

use allosaur_engine::stateful::memory::{end_in_time_wait, open_end};
use allosaur_engine::tcp::TcpState;
use allosaur_engine::time::SECOND;

use crate::world::{RUN, World, http};

const PAGE: &str = include_str!("../../../../docs/concepts/memory-of-flows.md");
/// What the ends of a million flows may take each.
const OPEN_BYTES_MAX: usize = 220;
const TIME_WAIT_BYTES_MAX: usize = 64;

/// The rows of the table under a heading, which ends with their sum.
fn table(heading: &str) -> Vec<(&str, usize)> {
    let section = PAGE.split("\n## ").find(|text| text.starts_with(heading));
    let rows = section.expect("the heading").lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        Some((cells.next()?, cells.next()?.parse().ok()?))
    });
    rows.collect()
}

#[test]
fn the_page_says_where_each_byte_is() {
    let open = (open_end().to_vec(), OPEN_BYTES_MAX);
    let waiting = (end_in_time_wait().to_vec(), TIME_WAIT_BYTES_MAX);
    for (heading, (mut parts, most)) in [("Open", open), ("TIME-WAIT", waiting)] {
        let sum = parts.iter().map(|(_, bytes)| bytes).sum();
        assert!(sum <= most, "{heading}: {sum}");
        parts.push(("together", sum));
        assert_eq!(table(heading), parts, "{heading}");
    }
}

#[test]
fn flows_in_time_wait_are_seen_and_hold_nothing_else() {
    let mut world = World::new(10_000);
    world.start(&http(1_000, 1_000.0), 1.0, None);
    world.run_for(SECOND / 2);
    let mut states = Vec::new();
    let show = |record: allosaur_engine::stateful::FlowRecord| states.push(record);
    world.engine.flow_records(world.now, RUN, show);
    let waiting: Vec<_> = states
        .iter()
        .filter(|record| record.tcp.state == TcpState::TimeWait)
        .collect();
    assert!((490..=500).contains(&waiting.len()), "{}", waiting.len());
    assert_eq!(world.engine.flows_in_time_wait(), waiting.len());
    for record in waiting {
        assert_eq!((record.tcp.round_trip_us, record.remote.port()), (0, 80));
        assert!(record.duration <= SECOND / 2 && record.heard_ago_ms <= 500);
    }
    world.engine.audit().expect("all rules");
    let held = world.engine.holdings();
    assert_eq!(held.flows, states.len());
    assert!(
        held.recovery + held.outboxes + held.variables < 20,
        "{held:?}"
    );
}
