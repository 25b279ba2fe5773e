//! The text of /metrics for counters that are all there, byte for byte: names and series are what
//! people's dashboards and alerts hold on to.

use std::path::PathBuf;
use std::sync::Arc;

use allosaur_api::commands::routes::BgpCounters;
use allosaur_engine::echo::EchoCounters;
use allosaur_engine::flow_stats::{Group, GroupTable};
use allosaur_engine::latency::Meter;
use allosaur_engine::session::FlowTimes;
use allosaur_engine::stateful::{FlowTableCounters, GroupCounters};
use allosaur_engine::stats::{DirectionCounters, TransmitCounters};
use allosaur_engine::template::{CompiledProfile, Layout, PoolSpec, ProfileSpec, Side};
use allosaur_server::counters::{
    BgpSessionBlock, CoreCounters, Counters, EchoBlock, GroupTraffic, LatencyErrors, LatencyTerms,
    RunBlock, TunnelErrors,
};
use allosaur_server::metrics::{
    Catalog, CatalogBgpSession, CatalogEcho, CatalogGroup, CatalogPort, CatalogProfile, CatalogRun,
    TextFormat, text,
};

/// Set to write the golden files instead of comparing them.
const WRITE_GOLDENS: &str = "ALLOSAUR_WRITE_GOLDENS";
const PORTS: usize = 3;
const VERSION: u32 = 4;

#[test]
fn the_text_is_the_same_byte_for_byte() {
    let (catalog, counters) = (catalog(), counters());
    for (form, name) in [
        (TextFormat::OpenMetrics, "openmetrics.txt"),
        (TextFormat::Plain, "plain.txt"),
    ] {
        let text = text(&catalog, &counters, form);
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/guides/metrics");
        if std::env::var_os(WRITE_GOLDENS).is_some() {
            std::fs::create_dir_all(&path).expect("a folder can be made");
            std::fs::write(path.join(name), &text).expect("the golden can be written");
        }
        let golden = std::fs::read_to_string(path.join(name)).expect("the golden is there");
        for (number, (was, is)) in golden.lines().zip(text.lines()).enumerate() {
            assert_eq!(is, was, "{name}, line {}", number + 1);
        }
        assert_eq!(text.len(), golden.len(), "{name}");
    }
}

/// Two ports of streams, one of flows, and all that may be there.
fn catalog() -> Catalog {
    let port = |peer, mode| CatalogPort {
        driver: "memory".to_owned(),
        interface: String::new(),
        description: "a \"port\"".to_owned(),
        peer,
        mode,
        is_link_up: true,
        is_sending: peer.is_some(),
        profiles: vec![CatalogProfile {
            name: "_".to_owned(),
            streams: 2,
            is_running: true,
        }],
    };
    let group = |pg_id, group, senders| CatalogGroup {
        pg_id,
        group,
        version: VERSION,
        before: vec![GroupTraffic::default(); PORTS].into(),
        profiles: Arc::from("_"),
        senders,
    };
    let flow = Group::flow(0).expect("the first");
    let latency = Group::latency(0).expect("the first");
    Catalog {
        version: "v1.2.3".to_owned(),
        built: "Nov 27 2026 12:00:00".to_owned(),
        uptime_s: 1.5,
        ports: vec![
            port(Some(1), "STL"),
            port(Some(0), "STL"),
            port(None, "ASTF"),
        ],
        groups: vec![group(7, flow, 0b001), group(8, latency, 0b010)],
        runs: vec![run("web", 0.0), run("idle", 12.5)],
        echo: Some(echo()),
        bgp_sessions: vec![bgp_session()],
        problems: Vec::new(),
    }
}

fn run(name: &str, offered_cps: f64) -> CatalogRun {
    let pools = [
        PoolSpec::new(Side::Client, 0x1000_0001, 0x1000_00ff),
        PoolSpec::new(Side::Server, 0x3000_0001, 0x3000_00ff),
    ];
    let mut profile = ProfileSpec::request_response([100, 1000], pools, 10.0);
    profile.groups = vec!["first".to_owned()];
    profile.templates[0].group = 1;
    let compiled = CompiledProfile::compile(&profile, Layout::SMALLEST).expect("it is right");
    let block = RunBlock::new(2, 0);
    if offered_cps == 0.0 {
        let side =
            |first: u64| GroupCounters::from_words(std::array::from_fn(|n| first + n as u64));
        block.publish(&[<[GroupCounters; 2]>::default(), [side(100), side(1000)]]);
        for place in 0..FlowTimes::WORDS {
            block.publish_time(place, place as u64 % 3 + 1);
        }
    }
    CatalogRun {
        profile: name.to_owned(),
        compiled: Arc::new(compiled),
        blocks: vec![Arc::new(block)],
        is_over: false,
        offered_cps,
    }
}

fn bgp_session() -> CatalogBgpSession {
    let block = BgpSessionBlock::default();
    let counters = BgpCounters {
        established: 2,
        announced: 1_000,
        withdrawn: 100,
        bytes_sent: 20_000,
        bytes_received: 400,
        notifications_received: 1,
        ..BgpCounters::default()
    };
    block.publish(true, 3, counters);
    CatalogBgpSession {
        speaker: "r1".to_owned(),
        peer: "192.0.2.254".to_owned(),
        block: Arc::new(block),
    }
}

fn echo() -> CatalogEcho {
    let block = EchoBlock::new([2]);
    let mut meter = Meter::default();
    for (number, time_ns) in [(0, 3_000), (1, 700_000), (3, 700_001)] {
        meter.record(time_ns, number, 0);
        block.count_latency(2, time_ns);
    }
    let values = std::array::from_fn(|n| n as u64 + 1);
    block.publish(2, &EchoCounters::from_values(values), meter.stats());
    CatalogEcho {
        profile: "web".to_owned(),
        block: Arc::new(block),
    }
}

fn counters() -> Counters {
    let counters = Counters::new(PORTS, 1).with_flows();
    let direction = |n: u64| DirectionCounters {
        packets: n,
        bytes: 64 * n,
        by_size: [n, 0, 0, 1, 0, 0, 2],
    };
    let sent = |n: u64| TransmitCounters {
        sent: direction(n),
        missed_packets: n + 1,
        queue_full: n + 2,
        lost_packets: n + 3,
    };
    let core = CoreCounters {
        busy_ns: 250_000_000,
        total_ns: 1_000_000_000,
    };
    counters.cores[0].publish(&[sent(10), sent(20), sent(30)], core);
    let tables = [1, 100]
        .map(|first| FlowTableCounters::from_values(std::array::from_fn(|n| first + n as u64)));
    counters.cores[0].publish_flow_tables(&tables);
    counters.receive.arrivals.publish_port(1, &direction(9), 1);
    let errors = TunnelErrors {
        other_network: 2,
        bad_header: 1,
    };
    counters.receive.arrivals.publish_tunnel_errors(1, errors);
    counters.receive.arrivals.publish_time(core);
    let mut table = GroupTable::default();
    table.count(Group::flow(0).expect("the first"), 10, 680);
    table.miss(Group::flow(0).expect("the first"), 3);
    counters.cores[0].publish_groups(0, &mut table);
    let mut table = GroupTable::default();
    table.count(Group::flow(0).expect("the first"), 9, 612);
    counters.receive.arrivals.publish_groups(1, &mut table);
    let mut meter = Meter::default();
    let terms = LatencyTerms {
        version: VERSION,
        run: 1,
    };
    counters.receive.expect_latency(0, terms);
    for (number, time_ns) in [
        (0, 900),
        (1, 8_980),
        (2, 12_000),
        (2, 30_000),
        (9, 20_000_000_000),
    ] {
        meter.record(time_ns, number, 0);
        counters.receive.count_latency(0, time_ns);
    }
    counters.receive.publish_latency(0, VERSION, meter.stats());
    counters.receive.publish_latency_errors(LatencyErrors {
        old_flow: 5,
        bad_header: 6,
    });
    counters
}
