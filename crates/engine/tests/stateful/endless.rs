//! Applications over bytes that never end: what they hold stays bounded, they leave the core to others,
//! and at the end of the run they are cut off. Clients at odd addresses and their servers are so; the
//! others say a byte each and close.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allosaur_engine::app::{
    AppCore, AppFlowInfo, AppFlows, Application, ApplicationContext, ApplicationFactory, CoreInfo,
    FlowEvent, FlowId, Output, Transport, YIELD,
};
use allosaur_engine::stateful::{Holdings, RunLimits};
use allosaur_engine::template::{CompiledProfile, Layout};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};

use crate::applications::{CLIENT, SERVER, outcomes, profile};
use crate::world::World;

/// Flows of each kind.
const EACH: u64 = 2;
const PIECE_BYTES: usize = 1_000;
/// How long the run begins flows, and lets them go on.
const BEGINS: Nanos = 10 * MILLISECOND;
const GOES_ON: Nanos = 2 * MILLISECOND;
/// What a send buffer holds, and a receive buffer, unless a profile says otherwise.
const BUFFER_BYTES: u64 = 32 * 1024;

/// What a flow does that never ends, after a byte of each end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endless {
    /// It speaks, and its peer reads.
    Speaks,
    /// It speaks, and nobody reads.
    SpeaksToTheDeaf,
    /// It says nothing, again and again.
    SaysNothing,
    /// It sets the time after which it ends, which is no event.
    SetsKeepalive,
    WakesItself,
    /// It wakes all that are so, itself too, twice.
    WakesAll,
    /// It is due at a time that is over.
    IsAlwaysDue,
}

/// What flows share.
#[derive(Debug)]
struct Shared {
    endless: Endless,
    /// Those that never end.
    flows: Vec<FlowId>,
    /// How often these were woken, and how often they were due.
    called: Arc<[AtomicU64; 2]>,
}

#[derive(Debug)]
struct Talker {
    id: FlowId,
    /// `None` ends.
    endless: Option<Endless>,
    is_client: bool,
    has_said: bool,
    has_heard: bool,
    has_closed: bool,
}

impl Talker {
    fn wake(&self, shared: &Shared, cx: &mut ApplicationContext<'_>) {
        match self.endless {
            Some(Endless::WakesItself) => cx.wake(self.id),
            Some(Endless::WakesAll) => {
                let twice = shared.flows.iter().chain(&shared.flows);
                twice.for_each(|flow| cx.wake(*flow));
            }
            _ => {}
        }
    }
}

impl Application for Talker {
    type Shared = Shared;

    fn start(shared: &mut Shared, cx: &mut ApplicationContext<'_>, flow: &AppFlowInfo) -> Talker {
        let client = match flow.is_client {
            true => flow.local,
            false => flow.remote,
        };
        let IpAddr::V4(address) = client.ip() else {
            panic!("clients have IPv4");
        };
        let talker = Talker {
            id: flow.id,
            endless: (address.to_bits() % 2 == 1).then_some(shared.endless),
            is_client: flow.is_client,
            has_said: false,
            has_heard: false,
            has_closed: false,
        };
        if talker.endless.is_some() {
            shared.flows.push(flow.id);
            talker.wake(shared, cx);
        }
        talker
    }

    fn handle_event(
        &mut self,
        shared: &mut Shared,
        cx: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        if event == FlowEvent::Woken {
            assert!(self.endless.is_some());
            shared.called[0].fetch_add(1, Ordering::Relaxed);
            self.wake(shared, cx);
        }
    }

    fn handle_data(
        &mut self,
        _: &mut Shared,
        _: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        self.has_heard = true;
        let is_deaf = self.endless == Some(Endless::SpeaksToTheDeaf);
        if is_deaf { 0 } else { data.len() }
    }

    fn handle_timeout(&mut self, shared: &mut Shared, _: &mut ApplicationContext<'_>) {
        assert_eq!(self.endless, Some(Endless::IsAlwaysDue));
        shared.called[1].fetch_add(1, Ordering::Relaxed);
    }

    fn poll_output(
        &mut self,
        _: &mut Shared,
        _: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        if (self.is_client || self.has_heard) && !self.has_said {
            self.has_said = true;
            out.push(b'x');
            return Some(Output::Data);
        }
        match self.endless {
            None => {
                let closes = self.has_heard && !std::mem::replace(&mut self.has_closed, true);
                closes.then_some(Output::Close)
            }
            Some(Endless::Speaks | Endless::SpeaksToTheDeaf) => {
                out.resize(room.min(PIECE_BYTES), b'x');
                Some(Output::Data)
            }
            Some(Endless::SaysNothing) => Some(Output::Data),
            Some(Endless::SetsKeepalive) => Some(Output::Keepalive(60_000)),
            Some(Endless::WakesItself | Endless::WakesAll | Endless::IsAlwaysDue) => None,
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        (self.endless == Some(Endless::IsAlwaysDue)).then_some(0)
    }
}

#[derive(Debug)]
struct Talkers(Endless, Arc<[AtomicU64; 2]>);

impl ApplicationFactory for Talkers {
    fn core(&self, _: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<Talker>::new(Shared {
            endless: self.0,
            flows: Vec::new(),
            called: Arc::clone(&self.1),
        }))
    }
}

/// Buffers that the ends of flows may own at once.
fn owned_buffers_max(transport: Transport) -> u64 {
    let of_an_end = match transport {
        // All in flight or to be sent, and one that was begun; of those that end, their byte.
        Transport::Stream => BUFFER_BYTES.div_ceil(PIECE_BYTES as u64) + 2,
        Transport::Datagram => 1,
    };
    2 * 2 * EACH * of_an_end
}

/// Runs the flows; how often those that never end were woken, and were due.
fn run(transport: Transport, endless: Endless) -> [u64; 2] {
    let called = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let spec = profile(transport, 2 * EACH as u32);
    let compiled = CompiledProfile::compile(&spec, Layout::SMALLEST).expect("it is right");
    let talkers = || Arc::new(Talkers(endless, Arc::clone(&called)));
    let compiled = compiled.with_application(CLIENT, talkers());
    let compiled = compiled.with_application(SERVER, talkers());
    let mut world = World::new(1_000);
    // Else messages without end are all that the test is about.
    world.limit_room(8);
    let limits = RunLimits {
        close_max: Some(GOES_ON),
        ..RunLimits::default()
    };
    world.start_compiled_within(compiled, 1.0, Some(BEGINS), limits);
    let most = owned_buffers_max(transport);
    for _ in 0..BEGINS / MILLISECOND {
        world.run_for(MILLISECOND);
        let holdings = world.engine.holdings();
        assert!(holdings.owned_buffers as u64 <= most, "{holdings:?}");
        world.engine.audit().expect("all holds");
    }
    let name = format!("{transport:?} {endless:?}");
    let sides = outcomes(&world);
    assert_eq!(sides.map(|side| side.completed), [EACH; 2], "{name}");
    // Past TIME-WAIT.
    world.run_for(5 * SECOND);
    let sides = outcomes(&world);
    assert_eq!(sides.map(|side| side.cut_off), [EACH; 2], "{name}");
    assert_eq!(world.engine.holdings(), Holdings::default(), "{name}");
    if (transport, endless) == (Transport::Stream, Endless::SpeaksToTheDeaf) {
        let received = world.sides()[0].flows.tcp.rcvbyte;
        assert!(received <= 2 * EACH * BUFFER_BYTES, "{received}");
    }
    called.each_ref().map(|count| count.load(Ordering::Relaxed))
}

/// Runs both transports; how often flows were woken or due must be within what one event in
/// [`YIELD`] gives.
fn run_both(endless: Endless) -> [[u64; 2]; 2] {
    let called = [Transport::Stream, Transport::Datagram].map(|it| run(it, endless));
    let most = 2 * EACH * (1 + (BEGINS + GOES_ON) / YIELD);
    for count in called.as_flattened() {
        assert!(*count <= most, "{endless:?}: {called:?}, {most}");
    }
    called
}

/// As often as flows are called at least that are called all the time.
const CALLED_MIN: u64 = 2 * EACH * (BEGINS / YIELD / 4);

#[test]
fn who_speaks_without_end_holds_no_more_than_its_send_buffer() {
    assert_eq!(run_both(Endless::Speaks), [[0, 0]; 2]);
}

#[test]
fn who_speaks_to_a_peer_that_never_reads_fills_its_window_and_waits() {
    assert_eq!(run_both(Endless::SpeaksToTheDeaf), [[0, 0]; 2]);
}

#[test]
fn who_says_nothing_again_and_again_leaves_the_core_to_others() {
    assert_eq!(run_both(Endless::SaysNothing), [[0, 0]; 2]);
    assert_eq!(run_both(Endless::SetsKeepalive), [[0, 0]; 2]);
}

#[test]
fn who_wakes_itself_for_ever_is_called_once_in_a_while() {
    for [woken, due] in run_both(Endless::WakesItself) {
        assert!(woken >= CALLED_MIN && due == 0, "{woken} {due}");
    }
}

#[test]
fn flows_that_wake_each_other_for_ever_are_called_once_in_a_while() {
    for [woken, due] in run_both(Endless::WakesAll) {
        assert!(woken >= CALLED_MIN && due == 0, "{woken} {due}");
    }
}

#[test]
fn who_is_always_due_is_called_once_in_a_while() {
    for [woken, due] in run_both(Endless::IsAlwaysDue) {
        assert!(due >= CALLED_MIN && woken == 0, "{woken} {due}");
    }
}
