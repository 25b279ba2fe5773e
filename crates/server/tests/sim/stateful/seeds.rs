//! Ten thousand seeds: any small profile, over any link, with any fault, comes to its end, and all
//! that must hold does.
//!
//! A failure names its seed. `ALLOSAUR_SIM_SEED=n` runs that one alone, `ALLOSAUR_SIM_SEEDS=n` so
//! many.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use allosaur_engine::stateful::GroupCounters;
use allosaur_engine::template::{CompiledProfile, Layout};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_server::sim::stateful::{
    Fault, FaultShare, LinkCounters, LinkSettings, SimRng, SimSettings, World,
};

use super::profiles::{self, Made};
use super::witness::{Seen, Witness};

const SEEDS: u64 = 10_000;
/// How long a run may take: the longest silences of TCP add up.
const PATIENCE: Nanos = 24 * 3600 * SECOND;
/// How long it may take until flows that are cut off are gone, with what swallows stragglers.
const CUT: Nanos = SECOND;
/// Failures that are shown.
const SHOWN: usize = 10;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn all_seeds_come_to_their_end_and_nothing_is_wrong() {
    if let Some(seed) = variable("ALLOSAUR_SIM_SEED") {
        show(seed);
        let problems = run(seed);
        assert!(problems.is_empty(), "seed {seed}: {}", problems.join("; "));
        return;
    }
    let seeds = variable("ALLOSAUR_SIM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    let problems = catch_unwind(AssertUnwindSafe(|| run(seed)));
                    let problems = problems.unwrap_or_else(|_| vec!["it panicked".to_owned()]);
                    if !problems.is_empty() {
                        let mut failures = failures.lock().expect("nobody panics in there");
                        failures.push(format!("seed {seed}: {}", problems.join("; ")));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody panics in there");
    let shown = &failures[..failures.len().min(SHOWN)];
    assert!(
        failures.is_empty(),
        "{} seeds:\n{}",
        failures.len(),
        shown.join("\n")
    );
}

#[test]
fn a_seed_gives_the_same_frames_each_time() {
    for seed in 0..100 {
        assert_eq!(digest(seed), digest(seed), "seed {seed}");
    }
    assert_ne!(digest(1), digest(2));
}

fn digest(seed: u64) -> u64 {
    let mut chance = SimRng::new(seed, 77);
    let made = profiles::make(&mut chance);
    let settings = settings(&mut chance, seed);
    let mut witness = Witness::new(&made.talks);
    let mut world = World::new(&settings, &mut witness);
    world.start(&compile(&made, &settings), 1.0, made.lasts);
    world.run_until(PATIENCE);
    witness.digest
}

fn compile(made: &Made, settings: &SimSettings) -> Arc<CompiledProfile> {
    let layout = Layout {
        cores: settings.cores,
        pairs: 1,
    };
    Arc::new(CompiledProfile::compile(&made.spec, layout).expect("it is right"))
}

/// Zero half of the time, else up to `most`.
fn up_to(chance: &mut SimRng, most: f64) -> f64 {
    if chance.happens(0.5) {
        return 0.0;
    }
    chance.below(1001) as f64 / 1000.0 * most
}

fn settings(chance: &mut SimRng, seed: u64) -> SimSettings {
    let is_bad = chance.happens(0.8);
    let mut link = LinkSettings::perfect(chance.below(300) * MILLISECOND);
    if is_bad {
        link.loss = up_to(chance, 0.2);
        link.reorder = up_to(chance, 0.2);
        link.duplicate = up_to(chance, 0.2);
        if chance.happens(0.3) {
            link.rate_bps = Some([1e6, 1e7, 1e9][chance.below(3) as usize]);
            link.queue_bytes = chance.happens(0.5).then(|| 3000 + chance.below(60_000));
        }
    }
    let mut faults = Vec::new();
    if is_bad && chance.happens(0.4) {
        let fault = Fault::ALL[chance.below(Fault::COUNT as u64) as usize];
        let share = match fault {
            Fault::Truncate | Fault::Corrupt => up_to(chance, 0.2),
            _ => up_to(chance, 1.0),
        };
        faults.push(FaultShare { fault, share });
    }
    SimSettings {
        seed,
        unix_time: 0,
        cores: 1 + chance.below(2) as u32,
        flows_max: 1024,
        // Without a draw, so that seeds stay what they were.
        mtu: [1500, 9000][(seed % 2) as usize],
        room: if chance.happens(0.2) {
            1 + chance.below(6) as usize
        } else {
            usize::MAX
        },
        link,
        faults,
    }
}

/// Says what a seed means.
fn show(seed: u64) {
    let mut chance = SimRng::new(seed, 77);
    let made = profiles::make(&mut chance);
    println!("{:#?}", settings(&mut chance, seed));
    let spec = &made.spec;
    println!("client: {:?}\nserver: {:?}", spec.client, spec.server);
    for (number, program) in spec.programs.iter().enumerate() {
        println!("{number}: {:?} {:?}", program.transport, program.commands);
    }
    for template in &spec.templates {
        let client = &template.client;
        let (limit, rate_cps) = (client.limit, client.rate_cps);
        println!("port {}: {limit:?} at {rate_cps} cps", client.port);
    }
}

/// Runs a seed. Returns what is wrong.
fn run(seed: u64) -> Vec<String> {
    let mut chance = SimRng::new(seed, 77);
    let made = profiles::make(&mut chance);
    let settings = settings(&mut chance, seed);
    let mut witness = Witness::new(&made.talks);
    let mut world = World::new(&settings, &mut witness);
    world.start(&compile(&made, &settings), 1.0, made.lasts);
    let mut check = Check::default();
    world.run_until(chance.below(2 * SECOND));
    check.problems.extend(world.audit().err());
    let is_cut = chance.happens(0.1);
    if is_cut {
        world.cut();
        world.run_until(world.passed() + CUT);
    }
    let is_over = world.run_until(if is_cut { 0 } else { PATIENCE });
    check.that(is_over, || format!("flows are left: {:?}", world.flows()));
    check.problems.extend(world.audit().err());
    let totals = world.totals(1);
    let tables = world.flow_tables();
    let links = world.links();
    let overflow = tables[0].err_c_tuple_err + tables[0].err_flow_overflow;
    drop(world);
    check.sides(&totals, &witness.seen);
    if !is_cut {
        check.link(&links, &witness.seen);
        check.between(&totals, &settings, &made);
    }
    check.that(overflow == 0, || format!("{overflow} flows found no place"));
    check.problems.extend(witness.problems.into_iter().take(3));
    check.problems
}

/// Gathers what does not hold.
#[derive(Default)]
struct Check {
    problems: Vec<String>,
}

impl Check {
    fn that(&mut self, holds: bool, problem: impl FnOnce() -> String) {
        if !holds {
            self.problems.push(problem());
        }
    }

    fn equal(&mut self, what: &str, left: u64, right: u64) {
        self.that(left == right, || format!("{what}: {left} and {right}"));
    }

    fn at_most(&mut self, what: &str, left: u64, right: u64) {
        self.that(left <= right, || {
            format!("{what}: {left} is more than {right}")
        });
    }

    /// What must hold of each side by itself.
    fn sides(&mut self, totals: &[GroupCounters; 2], seen: &[Seen; 2]) {
        for ((name, group), seen) in ["client", "server"].iter().zip(totals).zip(seen) {
            let (tcp, udp) = (&group.flows.tcp, &group.flows.udp);
            let say = |what: &str| format!("{name} {what}");
            self.equal(&say("active flows at the end"), group.active, 0);
            self.equal(&say("established flows at the end"), group.established, 0);
            self.equal(
                &say("begun and closed"),
                tcp.connattempt + tcp.accepts,
                tcp.closed,
            );
            self.equal(
                &say("UDP begun and closed"),
                udp.connects + udp.accepts,
                udp.closed,
            );
            self.equal(
                &say("flows that are over, and the ways in which they ended"),
                tcp.closed + udp.closed,
                group.flows.outcomes.judged(),
            );
            self.equal(&say("memory for reassembly"), tcp.reasalloc, tcp.reasfree);
            self.equal(&say("messages sent, and frames"), udp.sndpkt, seen.udp_left);
            self.at_most(&say("segments counted"), tcp.sndtotal, seen.tcp_left);
            self.at_most(
                &say("segments arrived"),
                tcp.rcvtotal + udp.rcvpkt,
                seen.arrived,
            );
            self.at_most(&say("drops"), tcp.drops + tcp.conndrops, tcp.closed);
            self.at_most(&say("connections"), tcp.connects, tcp.closed);
            self.at_most(&say("acknowledged"), tcp.rcvackbyte, tcp.sndbyte_ok);
            self.at_most(&say("bytes sent"), tcp.sndbyte_ok, tcp.sndbyte);
            let kinds = tcp.sndpack + tcp.sndctrl + tcp.sndacks + tcp.sndrexmitpack + tcp.sndprobe;
            self.at_most(
                &say("segments by kind"),
                kinds,
                tcp.sndtotal + tcp.keepprobe,
            );
        }
    }

    /// What the link was given went somewhere.
    fn link(&mut self, links: &[LinkCounters; 2], seen: &[Seen; 2]) {
        for (link, seen) in links.iter().zip(seen) {
            let arrived = link.frames - link.lost - link.overflowed + link.duplicated;
            self.equal("frames on the link that arrived", arrived, seen.arrived);
        }
    }

    /// What must hold between the sides.
    fn between(&mut self, totals: &[GroupCounters; 2], settings: &SimSettings, made: &Made) {
        let [client, server] = totals;
        let began = client.flows.tcp.connattempt + client.flows.udp.connects;
        let least = if made.lasts.is_some() { 1 } else { made.flows };
        self.at_most("flows that should begin, and did", least, began);
        if made.lasts.is_none() {
            self.at_most(
                "flows that began, and should",
                began,
                made.flows + made.executed,
            );
        }
        for (way, from, to) in [("up", client, server), ("down", server, client)] {
            let (sent, arrived) = (&from.flows.tcp, &to.flows.tcp);
            let say = |what: &str| format!("{way}: {what}");
            self.at_most(&say("bytes delivered"), arrived.rcvbyte, sent.sndbyte_ok);
            let (sent, arrived) = (&from.flows.udp, &to.flows.udp);
            if settings.link.duplicate == 0.0 {
                self.at_most(&say("messages delivered"), arrived.rcvpkt, sent.sndpkt);
            }
        }
        let cuts = |side: &GroupCounters| {
            let tcp = &side.flows.tcp;
            tcp.drops + tcp.conndrops
        };
        let cut = cuts(client) + cuts(server);
        let may_cut = settings.link.loss > 0.0
            || settings.link.queue_bytes.is_some()
            || !settings.faults.is_empty()
            || made.talks.values().any(|talk| talk.resets);
        self.that(may_cut || cut == 0, || {
            format!("{cut} flows were cut without a reason")
        });
        if cut > 0 {
            return;
        }
        self.equal(
            "connections",
            client.flows.tcp.connects,
            server.flows.tcp.connects,
        );
        for (way, from, to) in [("up", client, server), ("down", server, client)] {
            let (sent, arrived) = (&from.flows.tcp, &to.flows.tcp);
            self.equal(&format!("{way}: bytes"), sent.sndbyte, arrived.rcvbyte);
            self.equal(
                &format!("{way}: acknowledged"),
                sent.rcvackbyte,
                sent.sndbyte,
            );
        }
        if settings.link.is_perfect() && settings.faults.is_empty() {
            self.perfect(client, server, made);
        }
    }

    /// What must hold where nothing disturbs.
    fn perfect(&mut self, client: &GroupCounters, server: &GroupCounters, made: &Made) {
        for (name, side) in [("client", client), ("server", server)] {
            let outcomes = &side.flows.outcomes;
            self.equal(
                &format!("{name}: flows that completed"),
                outcomes.completed,
                outcomes.judged(),
            );
        }
        if made.lasts.is_none() {
            let began = client.flows.tcp.connattempt + client.flows.udp.connects;
            self.equal(
                "flows and those they made",
                began,
                made.flows + made.executed,
            );
        }
        self.equal(
            "UDP flows",
            client.flows.udp.connects,
            server.flows.udp.accepts,
        );
        for (way, from, to) in [("up", client, server), ("down", server, client)] {
            let (sent, arrived) = (&from.flows.udp, &to.flows.udp);
            self.equal(&format!("{way}: messages"), sent.sndpkt, arrived.rcvpkt);
            self.equal(
                &format!("{way}: their bytes"),
                sent.sndbyte,
                arrived.rcvbyte,
            );
            self.equal(&format!("{way}: silences"), sent.keepdrops, 0);
            let (sent, arrived) = (&from.flows.tcp, &to.flows.tcp);
            self.equal(&format!("{way}: segments"), sent.sndtotal, arrived.rcvtotal);
        }
        let streams = made
            .talks
            .values()
            .filter(|talk| !talk.streams[0].is_empty() || !talk.streams[1].is_empty());
        self.that(
            streams.count() == 0 || client.flows.tcp.connects > 0,
            || "no connection".to_owned(),
        );
    }
}
