//! Each profile of the data runs between two ports, from its JSON to the last byte.

use allosaur_engine::app::UdpCounters;
use allosaur_engine::stateful::GroupCounters;
use allosaur_engine::tcp::TcpCounters;
use allosaur_engine::template::Layout;
use allosaur_engine::time::SECOND;
use allosaur_server::control::stateful::profile::compile;
use allosaur_testkit::data;

use crate::world::World;

/// TCP's counters that are no errors.
const TCP_FINE: [&str; 30] = [
    "connattempt",
    "accepts",
    "connects",
    "closed",
    "segstimed",
    "rttupdated",
    "delack",
    "sndtotal",
    "sndpack",
    "sndbyte",
    "sndbyte_ok",
    "sndctrl",
    "sndacks",
    "rcvtotal",
    "rcvpack",
    "rcvbyte",
    "rcvackpack",
    "rcvackbyte",
    "rcvackbyte_of",
    "rcvoffloads",
    "preddat",
    "drops",
    "testdrops",
    "sndwinup",
    "predack",
    "ecn_ce",
    "ecn_ect0",
    "ecn_ect1",
    "ecn_shs",
    "ecn_rcwnd",
];
/// UDP's counters that are errors.
const UDP_ERRORS: [&str; 3] = ["keepdrops", "nombuf", "pkt_toobig"];
/// Profiles whose flows end by a reset after a time: what is under way then is nobody's.
const ENDED_BY_RESET: [&str; 1] = ["http_eflow4"];

/// All errors of one side that are set.
fn errors(side: &GroupCounters) -> Vec<(&'static str, u64)> {
    let tcp = TcpCounters::NAMES.iter().zip(side.flows.tcp.values());
    let tcp = tcp.filter(|(name, _)| !TCP_FINE.contains(name));
    let udp = UdpCounters::NAMES.iter().zip(side.flows.udp.values());
    let udp = udp.filter(|(name, _)| UDP_ERRORS.contains(name));
    let set = tcp.chain(udp).filter(|(_, value)| *value > 0);
    set.map(|(name, value)| (*name, value)).collect()
}

#[test]
fn all_profiles_of_the_data_run_to_the_last_byte() {
    let Some(folder) = data::folder("profiles-stateful") else {
        return;
    };
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let name = path
            .file_stem()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).expect("a profile is text");
        let compiled = compile(&text, Layout::SMALLEST).expect("it is taken");
        // About ten connections a second.
        let factor = 10.0 / compiled.rate_cps();
        let mut world = World::start(compiled, factor, 2 * SECOND);
        world.run_for(60 * SECOND);
        wrong.extend(check(&name, &world));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(name: &str, world: &World) -> Vec<String> {
    let [client, server] = world.sides();
    let mut wrong = Vec::new();
    let mut say = |what: String| wrong.push(format!("{name}: {what}"));
    if client.flows.tcp.connects + client.flows.udp.connects == 0 {
        say("no flow began".to_owned());
    }
    if world.engine.flows() > 0 {
        say(format!("{} flows are left", world.engine.flows()));
    }
    for (side, counters) in [("client", &client), ("server", &server)] {
        for (error, count) in errors(counters) {
            say(format!("{side} {error} is {count}"));
        }
    }
    let bytes = |from: &GroupCounters, to: &GroupCounters| {
        let sent = from.flows.tcp.sndbyte + from.flows.udp.sndbyte;
        (sent, to.flows.tcp.rcvbyte + to.flows.udp.rcvbyte)
    };
    for (way, (sent, arrived)) in [
        ("asked", bytes(&client, &server)),
        ("answered", bytes(&server, &client)),
    ] {
        if sent != arrived && !ENDED_BY_RESET.contains(&name) {
            say(format!("{way}: {sent} bytes sent, {arrived} arrived"));
        }
    }
    wrong
}
