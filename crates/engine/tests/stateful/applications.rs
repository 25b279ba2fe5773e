//! Applications over bytes, from outside of the engine: one that echoes what it receives, against a
//! client that knows what must come back, over bad links in virtual time. Every byte is compared.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use allosaur_engine::app::{
    AppCore, AppFlowInfo, AppFlows, AppRow, Application, ApplicationContext, ApplicationFactory,
    BufferIndex, CoreInfo, FlowEvent, FlowId, Output, Transport,
};
use allosaur_engine::session::OutcomeCounters;
use allosaur_engine::stateful::{Holdings, StatefulCommand};
use allosaur_engine::tcp::End;
use allosaur_engine::template::{
    CompiledProfile, Layout, PoolSpec, ProfileSpec, ProgramIndex, Side, Tunable,
};
use allosaur_engine::time::{MILLISECOND, SECOND};
use allosaur_testkit::applications::{Askers, Echoes, Habits, Tally};

use crate::world::{RUN, World};

pub(crate) const CLIENT: ProgramIndex = ProgramIndex(0);
pub(crate) const SERVER: ProgramIndex = ProgramIndex(1);

/// A profile whose programs do nothing, in whose place applications run.
pub(crate) fn profile(transport: Transport, flows: u32) -> ProfileSpec {
    let wait = match transport {
        Transport::Stream => crate::world::receive(1),
        Transport::Datagram => allosaur_engine::app::ProgramCommand::ReceiveMessages {
            messages: 1,
            clear: false,
        },
    };
    let pools = [
        PoolSpec::new(Side::Client, 0x1000_0000, 0x1000_00ff),
        PoolSpec::new(Side::Server, 0x3000_0000, 0x3000_ffff),
    ];
    let programs = [vec![wait], vec![wait]];
    let mut profile = ProfileSpec::single(transport, programs, Vec::new(), pools, 1_000.0);
    profile.templates[0].client.limit = Some(flows);
    profile
}

/// Runs `flows` clients against echoes; what they saw.
fn run(world: &mut World, profile: &ProfileSpec, habits: Habits) -> Arc<Tally> {
    let tally = Arc::new(Tally::default());
    let askers = Askers {
        habits,
        tally: Arc::clone(&tally),
    };
    let compiled = CompiledProfile::compile(profile, Layout::SMALLEST);
    let compiled = compiled.expect("the profile is right");
    let compiled = compiled.with_application(CLIENT, Arc::new(askers));
    let compiled = compiled.with_application(SERVER, Arc::new(Echoes));
    world.start_compiled(compiled);
    let flows = u64::from(profile.templates[0].client.limit.expect("it has one"));
    for _ in 0..3_000 {
        world.run_for(SECOND / 5);
        world.engine.audit().expect("all holds");
        let ended = tally.ends.lock().expect("no panic").len() as u64;
        if ended >= 2 * flows && world.engine.flows() == 0 {
            break;
        }
    }
    let right = tally.right.load(Ordering::Relaxed);
    assert_eq!(
        (right, tally.wrong.load(Ordering::Relaxed)),
        (flows * habits.bytes, 0)
    );
    assert_eq!(world.engine.holdings(), Holdings::default());
    tally
}

fn assert_closed(tally: &Tally, flows: usize) {
    let ends = tally.ends.lock().expect("no panic");
    let count = |event| ends.iter().filter(|told| **told == event).count();
    assert_eq!(count(FlowEvent::PeerClosed), flows, "{ends:?}");
    assert_eq!(count(FlowEvent::Ended(End::Closed)), flows, "{ends:?}");
}

const GREEDY: Habits = Habits {
    bytes: 300_000,
    gulp: 0,
    pause: 0,
};

#[test]
fn an_echo_is_right_on_a_good_link() {
    let mut world = World::new(1_000);
    let tally = run(&mut world, &profile(Transport::Stream, 20), GREEDY);
    assert_closed(&tally, 20);
    let [client, server] = world.sides();
    assert_eq!(client.flows.tcp.rcvbyte, 20 * GREEDY.bytes);
    assert_eq!(server.flows.tcp.sndbyte, 20 * GREEDY.bytes);
    assert_eq!(
        (client.flows.tcp.sndrexmitpack, client.flows.tcp.drops),
        (0, 0)
    );
}

#[test]
fn an_echo_is_right_on_links_that_lose_double_and_reorder() {
    // Lost, doubled, late: of a million frames.
    let links = [
        (20_000, 0, 0),
        (0, 50_000, 0),
        (0, 0, 200_000),
        (30_000, 30_000, 100_000),
    ];
    for (seed, (lost, doubled, late)) in (1..).zip(links) {
        let mut world = World::new(1_000);
        world.delay = 2 * MILLISECOND;
        (world.lost_ppm, world.doubled_ppm, world.late_ppm) = (lost, doubled, late);
        world.seed_link(seed);
        let tally = run(&mut world, &profile(Transport::Stream, 10), GREEDY);
        assert_closed(&tally, 10);
        let [_, server] = world.sides();
        let disordered = server.flows.tcp.rcvoopack;
        assert!(lost + late == 0 || disordered > 0, "{disordered}");
    }
}

#[test]
fn an_echo_is_right_with_tiny_windows() {
    for (window, lost) in [(1_024, 0), (1_024, 20_000), (3_000, 20_000)] {
        let mut spec = profile(Transport::Stream, 10);
        for side in [&mut spec.client, &mut spec.server] {
            side.set(Tunable::ReceiveBuffer, window);
        }
        let mut world = World::new(1_000);
        (world.lost_ppm, world.late_ppm) = (lost, lost);
        let habits = Habits {
            bytes: 40_000,
            ..GREEDY
        };
        assert_closed(&run(&mut world, &spec, habits), 10);
    }
}

#[test]
fn who_reads_slowly_slows_its_peer_down_and_loses_nothing() {
    for lost in [0, 20_000] {
        let mut world = World::new(1_000);
        (world.lost_ppm, world.late_ppm) = (lost, 2 * lost);
        // 64 KB a second, whatever the window is.
        let habits = Habits {
            bytes: 200_000,
            gulp: 6_400,
            pause: 100 * MILLISECOND,
        };
        let begin = world.now;
        let tally = run(&mut world, &profile(Transport::Stream, 5), habits);
        assert_closed(&tally, 5);
        assert!(
            world.now - begin > 3 * SECOND,
            "it cannot be faster than it reads"
        );
        let [client, server] = world.sides();
        let beyond = client.flows.tcp.rcvbyteafterwin;
        assert_eq!(beyond, 0, "nothing came beyond the window that was offered");
        assert!(
            lost > 0 || server.flows.tcp.sndrexmitpack == 0,
            "nor was sent again"
        );
    }
}

#[test]
fn messages_are_echoed_as_they_were_said() {
    let mut world = World::new(1_000);
    let tally = run(
        &mut world,
        &profile(Transport::Datagram, 20),
        Habits {
            bytes: 9_000,
            ..GREEDY
        },
    );
    assert_eq!(tally.wrong.load(Ordering::Relaxed), 0);
    assert!(
        world.sides()[0].flows.udp.sndpkt >= 20 * 7,
        "several messages each"
    );
}

/// Sends constant data of its profile between bytes of its own.
#[derive(Debug, Default)]
struct Mixer {
    said: u32,
}

impl Application for Mixer {
    type Shared = ();

    fn start(shared: &mut (), _: &mut ApplicationContext<'_>, _: &AppFlowInfo) -> Mixer {
        let () = shared;
        Mixer::default()
    }

    fn handle_event(&mut self, _: &mut (), _: &mut ApplicationContext<'_>, _: FlowEvent) {}

    fn handle_data(&mut self, _: &mut (), _: &mut ApplicationContext<'_>, data: &[u8]) -> usize {
        data.len()
    }

    fn poll_output(
        &mut self,
        _: &mut (),
        _: &mut ApplicationContext<'_>,
        _: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        self.said += 1;
        match self.said {
            1..=60 if self.said % 2 == 1 => {
                out.resize(self.said as usize * 3, 0xaa);
                Some(Output::Data)
            }
            1..=60 => Some(Output::Buffer(BufferIndex(0))),
            61 => Some(Output::Close),
            _ => None,
        }
    }
}

/// Compares what it receives with what a [`Mixer`] says, and closes after it.
#[derive(Debug)]
struct Comparer {
    expected: Vec<u8>,
    is_peer_closed: bool,
    tally: Arc<Tally>,
}

impl Application for Comparer {
    type Shared = (Vec<u8>, Arc<Tally>);

    fn start(
        shared: &mut (Vec<u8>, Arc<Tally>),
        _: &mut ApplicationContext<'_>,
        _: &AppFlowInfo,
    ) -> Comparer {
        Comparer {
            expected: shared.0.clone(),
            is_peer_closed: false,
            tally: Arc::clone(&shared.1),
        }
    }

    fn handle_event(
        &mut self,
        _: &mut (Vec<u8>, Arc<Tally>),
        _: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        self.is_peer_closed |= event == FlowEvent::PeerClosed;
    }

    fn handle_data(
        &mut self,
        _: &mut (Vec<u8>, Arc<Tally>),
        _: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        assert_eq!(self.expected.drain(..data.len()).as_slice(), data);
        data.len()
    }

    fn poll_output(
        &mut self,
        _: &mut (Vec<u8>, Arc<Tally>),
        _: &mut ApplicationContext<'_>,
        _: usize,
        _: &mut Vec<u8>,
    ) -> Option<Output> {
        if !std::mem::take(&mut self.is_peer_closed) {
            return None;
        }
        let missing = self.expected.len() as u64;
        self.tally
            .right
            .fetch_add(u64::from(missing == 0), Ordering::Relaxed);
        Some(Output::Close)
    }
}

#[derive(Debug)]
struct Mixers;

impl ApplicationFactory for Mixers {
    fn core(&self, _: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<Mixer>::new(()))
    }
}

#[derive(Debug)]
struct Comparers(Vec<u8>, Arc<Tally>);

impl ApplicationFactory for Comparers {
    fn core(&self, _: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<Comparer>::new((
            self.0.clone(),
            Arc::clone(&self.1),
        )))
    }
}

#[test]
fn constant_data_and_bytes_of_its_own_go_in_one_stream() {
    let mut spec = profile(Transport::Stream, 10);
    spec.buffers = crate::world::http(1_777, 1.0).buffers;
    let constant: Vec<u8> = {
        let buffer = &spec.buffers[0];
        buffer.base.clone()
    };
    let expected = (1..=60u32).flat_map(|said| match said % 2 {
        1 => vec![0xaa; said as usize * 3],
        _ => constant.clone(),
    });
    let tally = Arc::new(Tally::default());
    let comparers = Comparers(expected.collect(), Arc::clone(&tally));
    let compiled = CompiledProfile::compile(&spec, Layout::SMALLEST).expect("it is right");
    let compiled = compiled.with_application(CLIENT, Arc::new(Mixers));
    let compiled = compiled.with_application(SERVER, Arc::new(comparers));
    let mut world = World::new(1_000);
    (world.lost_ppm, world.late_ppm) = (20_000, 20_000);
    world.start_compiled(compiled);
    world.run_for(120 * SECOND);
    assert_eq!(tally.right.load(Ordering::Relaxed), 10);
    assert_eq!(world.engine.holdings(), Holdings::default());
    // The client said that it is through long before all was acknowledged; it waits for nothing.
    let outcomes = outcomes(&world);
    assert_eq!(outcomes.each_ref().map(|side| side.completed), [10; 2]);
    assert_eq!(outcomes.each_ref().map(|side| side.judged()), [10; 2]);
    assert_eq!(outcomes.each_ref().map(|side| side.unanswered), [10, 0]);
}

/// How the flows of clients and servers ended.
pub(crate) fn outcomes(world: &World) -> [OutcomeCounters; 2] {
    let sides = world.sides().each_ref();
    sides.map(|side| side.flows.outcomes.clone())
}

/// Wants to hear more than anybody says.
#[derive(Debug, Default)]
struct Wanting {
    is_peer_closed: bool,
}

impl Application for Wanting {
    type Shared = ();

    fn start(shared: &mut (), _: &mut ApplicationContext<'_>, _: &AppFlowInfo) -> Wanting {
        let () = shared;
        Wanting::default()
    }

    fn handle_event(&mut self, _: &mut (), _: &mut ApplicationContext<'_>, event: FlowEvent) {
        self.is_peer_closed |= event == FlowEvent::PeerClosed;
    }

    fn handle_data(&mut self, _: &mut (), _: &mut ApplicationContext<'_>, data: &[u8]) -> usize {
        data.len()
    }

    fn poll_output(
        &mut self,
        _: &mut (),
        _: &mut ApplicationContext<'_>,
        _: usize,
        _: &mut Vec<u8>,
    ) -> Option<Output> {
        std::mem::take(&mut self.is_peer_closed).then_some(Output::Fail)
    }
}

#[derive(Debug)]
struct Wantings;

impl ApplicationFactory for Wantings {
    fn core(&self, _: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<Wanting>::new(()))
    }
}

#[test]
fn an_application_says_itself_that_it_failed() {
    let mut spec = profile(Transport::Stream, 10);
    spec.buffers = crate::world::http(1_777, 1.0).buffers;
    let compiled = CompiledProfile::compile(&spec, Layout::SMALLEST).expect("it is right");
    let compiled = compiled.with_application(CLIENT, Arc::new(Mixers));
    let compiled = compiled.with_application(SERVER, Arc::new(Wantings));
    let mut world = World::new(1_000);
    world.start_compiled(compiled);
    world.run_for(120 * SECOND);
    let [clients, servers] = outcomes(&world);
    assert_eq!((clients.completed, clients.judged()), (10, 10));
    assert_eq!((servers.closed_early, servers.judged()), (10, 10));
}

#[test]
fn what_is_cut_off_is_told_so_and_leaves_nothing_behind() {
    let mut world = World::new(1_000);
    let tally = Arc::new(Tally::default());
    let askers = Askers {
        habits: Habits {
            bytes: u64::MAX,
            ..GREEDY
        },
        tally: Arc::clone(&tally),
    };
    let spec = profile(Transport::Stream, 10);
    let compiled = CompiledProfile::compile(&spec, Layout::SMALLEST).expect("it is right");
    let compiled = compiled.with_application(CLIENT, Arc::new(askers));
    let compiled = compiled.with_application(SERVER, Arc::new(Echoes));
    world.start_compiled(compiled);
    world.run_for(SECOND / 20);
    let held = world.engine.holdings();
    assert!(
        held.applications == 20 && held.owned_buffers > 0,
        "{held:?}"
    );
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: true,
    });
    world.run_for(5 * SECOND);
    assert_eq!(world.engine.holdings(), Holdings::default());
    let ends = tally.ends.lock().expect("no panic");
    assert_eq!(ends.len(), 10, "{ends:?}");
    assert_eq!(outcomes(&world).map(|side| side.cut_off), [10; 2]);
}

/// The first flow of a pair waits until the second wakes it; then each says a byte.
#[derive(Debug)]
struct Paired {
    id: FlowId,
    says: u32,
    has_said: bool,
}

impl Application for Paired {
    /// The flow that waits.
    type Shared = Option<FlowId>;

    fn start(_: &mut Option<FlowId>, _: &mut ApplicationContext<'_>, flow: &AppFlowInfo) -> Paired {
        assert_eq!((flow.local.port(), flow.template), (80, 0));
        assert!(!flow.is_client && flow.remote.to_string().starts_with("16.0.0."));
        Paired {
            id: flow.id,
            says: 0,
            has_said: false,
        }
    }

    fn handle_event(
        &mut self,
        waiting: &mut Option<FlowId>,
        cx: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        match event {
            FlowEvent::Connected => match waiting.take() {
                Some(other) => {
                    cx.wake(other);
                    self.says = 1;
                }
                None => *waiting = Some(self.id),
            },
            FlowEvent::Woken => {
                cx.rows.add(0, 1, 1);
                self.says = 1;
            }
            _ => {}
        }
    }

    fn handle_data(
        &mut self,
        _: &mut Option<FlowId>,
        _: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        data.len()
    }

    fn poll_output(
        &mut self,
        _: &mut Option<FlowId>,
        cx: &mut ApplicationContext<'_>,
        _: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        if self.says == 1 {
            self.says = 2;
            cx.rows.add(0, 0, 1);
            out.push(b'x');
            return Some(Output::Data);
        }
        let closes = self.says == 2 && !std::mem::replace(&mut self.has_said, true);
        closes.then_some(Output::Close)
    }
}

#[derive(Debug)]
struct Pairs;

impl ApplicationFactory for Pairs {
    fn rows(&self) -> Vec<&'static [AppRow]> {
        const fn row(name: &'static str) -> AppRow {
            AppRow {
                name,
                label: None,
                help: "of a test",
                unit: "flows",
                is_error: false,
                is_sparse: false,
            }
        }
        static ROWS: [AppRow; 2] = [row("said"), row("woken")];
        vec![&ROWS]
    }

    fn core(&self, _: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<Paired>::new(None))
    }
}

#[test]
fn a_flow_wakes_another_and_counts_in_rows_of_its_own() {
    let spec = profile(Transport::Stream, 10);
    let compiled = CompiledProfile::compile(&spec, Layout::SMALLEST).expect("it is right");
    let compiled = compiled.with_application(SERVER, Arc::new(Pairs));
    let names: Vec<_> = compiled
        .application_rows()
        .iter()
        .map(|row| row.name)
        .collect();
    assert_eq!(names, ["said", "woken"]);
    let mut world = World::new(1_000);
    // The second time by the same profile: a core of its own, as the first is gone.
    for begun in [1, 2] {
        world.start_compiled(compiled.clone());
        world.run_for(10 * SECOND);
        let [client, server] = world.sides();
        assert_eq!(
            (client.flows.outcomes.completed, client.active),
            (10, 0),
            "{begun}"
        );
        assert_eq!(*server.flows.rows, [10, 5]);
        assert_eq!(*client.flows.rows, [0, 0]);
        world.tell(StatefulCommand::Remove { run: RUN });
    }
    assert_eq!(world.engine.holdings(), Holdings::default());
}
