//! One flow's run of a program.
//!
//! The flow says what happened (`handle_...`) and does what it is asked for ([`Action`]).

use super::buffers::BufferIndex;
use super::counters::ApplicationCounters;
use super::end::ProgramEnd;
use super::http::{StatusClass, StatusLine};
use super::program::Program;
use super::spec::{ProgramCommand, TICK, Transport, UNTIL_CLOSE};
use super::substitution::DRAWN_FIRST;
use super::variables::{VariableIndex, VariablePool, Variables};
use crate::rng::Lcg;
use crate::time::{MICROSECOND, Nanos, Tight};

/// Steps that an application may take before others have their turn.
pub const TURN_COMMANDS_MAX: u16 = 1000;
/// How long an application rests that took [`TURN_COMMANDS_MAX`] steps without waiting.
pub const YIELD: Nanos = 20 * MICROSECOND;

/// What the flow shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// TCP: send a buffer behind what is sent already. Say
    /// [`handle_room`](ProgramRun::handle_room) or
    /// [`handle_acknowledged`](ProgramRun::handle_acknowledged) when it is so; until then the
    /// program waits.
    Send {
        /// What.
        buffer: BufferIndex,
    },
    /// UDP: send a buffer as one message.
    SendMessage {
        /// What.
        buffer: BufferIndex,
    },
    /// Call [`handle_timeout`](ProgramRun::handle_timeout) at this time. There is one such time;
    /// a later one takes its place.
    WakeAt(Nanos),
    /// UDP: from now on, end the flow after a silence of this length.
    Keepalive {
        /// How long it may be silent.
        timeout_ms: u32,
        /// Only what arrives breaks the silence, not what is sent.
        received_only: bool,
    },
    /// TCP: an acknowledgment that is due leaves before the program goes on. So it does in TRex
    /// after `connect` and `wait_for_peer_close`, whose next command runs when the segment that
    /// they waited for has been answered.
    Acknowledge,
    /// TCP: send a FIN after what was sent. UDP: the flow is over.
    Close,
    /// TCP: reset the connection.
    Reset,
    /// Make a flow of a template of this group (the first is 1), and say
    /// [`handle_executed`](ProgramRun::handle_executed) when it is over, or could not be made.
    Execute {
        /// Which group.
        group: u16,
    },
}

/// What an application runs with.
#[derive(Debug)]
pub struct ProgramContext<'a> {
    /// Its program: always the same.
    pub program: &'a Program,
    /// The time.
    pub now: Nanos,
    /// Where random times come from.
    pub rng: &'a mut Lcg,
    /// The variables of all applications.
    pub variables: &'a mut VariablePool,
    /// Where it counts.
    pub counters: &'a mut ApplicationCounters,
}

/// What the next step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Nothing.
    No,
    /// The connection.
    Connected,
    /// So much as the step at `step` says.
    Received,
    /// The same, where what comes next is looked at ([`Flag::LOOKS`]).
    Looked,
    /// All that was sent is acknowledged.
    Acknowledged,
    /// There is room to send more.
    Room,
    /// A time.
    Time,
    /// The peer is done.
    PeerClosed,
    /// Another flow is over.
    Executed,
    /// It is over.
    Over,
}

/// Facts that are true or not.
#[derive(Clone, Copy, Debug)]
struct Flag(u8);

impl Flag {
    /// The connection is there.
    const CONNECTED: Flag = Flag(1);
    /// The peer is done.
    const PEER_CLOSED: Flag = Flag(1 << 1);
    /// Sending waits for acknowledgments.
    const BLOCKING: Flag = Flag(1 << 2);
    /// Something arrived.
    const HAS_RECEIVED: Flag = Flag(1 << 3);
    /// What arrives next is looked at: as the first of all, or as the answer to a request.
    const LOOKS: Flag = Flag(1 << 4);
    /// It is the answer to a request of HTTP/1.
    const ASKED: Flag = Flag(1 << 5);
}

/// What there is to say of data that arrived and was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// It was the first of the flow.
    pub is_first: bool,
    /// It is the beginning of an answer over HTTP/1.
    pub status: Option<StatusClass>,
}

/// The state of one run of a program.
///
/// Driven like this: [`start`](ProgramRun::start), then
/// [`poll_action`](ProgramRun::poll_action) until it gives nothing more; then the same after
/// each `handle_...`. When the flow is gone, however it ended, [`release`](ProgramRun::release).
///
/// It starts with the flow: a client's when it asks for the connection, a server's when it is
/// asked.
#[derive(Clone, Debug)]
pub struct ProgramRun {
    /// Bytes or messages that arrived and were not waited for yet.
    received: Tight,
    variables: VariableIndex,
    /// The next step.
    step: u16,
    /// Steps since something was waited for.
    taken: u16,
    /// The group of the flow that `exec_template` makes; 0 is none.
    group: u16,
    /// The group of the one before.
    group_before: u16,
    wait: Wait,
    flags: Flag,
    end: ProgramEnd,
    /// How much of the answer that is looked at was read.
    status: StatusLine,
}

/// Millions of them are held at once.
const _: () = assert!(std::mem::size_of::<ProgramRun>() <= 24);

impl ProgramRun {
    /// A run of `program` from its first command.
    pub fn start(program: &Program) -> ProgramRun {
        debug_assert!(!program.is_empty(), "a program has a command");
        ProgramRun::waiting_for(Wait::No)
    }

    /// A run that has said its last.
    pub fn over() -> ProgramRun {
        ProgramRun::waiting_for(Wait::Over)
    }

    fn waiting_for(wait: Wait) -> ProgramRun {
        ProgramRun {
            received: Tight::new(0),
            variables: VariableIndex::NONE,
            step: 0,
            taken: 0,
            group: 0,
            group_before: 0,
            wait,
            flags: Flag(Flag::BLOCKING.0 | Flag::LOOKS.0),
            end: ProgramEnd::None,
            status: StatusLine::default(),
        }
    }

    #[inline]
    fn has(&self, flag: Flag) -> bool {
        self.flags.0 & flag.0 != 0
    }

    #[inline]
    fn set(&mut self, flag: Flag) {
        self.flags.0 |= flag.0;
    }

    /// The connection is there.
    #[inline]
    pub fn handle_connected(&mut self) {
        self.set(Flag::CONNECTED);
        self.go_on_from(Wait::Connected);
    }

    /// TCP: bytes arrived in order.
    #[inline]
    pub fn handle_delivered(&mut self, bytes: u32) {
        self.received = Tight::new(self.received.get() + u64::from(bytes));
        self.go_on_with_received();
    }

    /// Whether what was delivered just now is to be [looked at](ProgramRun::look).
    #[inline]
    pub fn looks(&self) -> bool {
        self.has(Flag::LOOKS)
    }

    /// Looks at the bytes or the message that came last, `data` with those that are there of them: they are
    /// the first of all, or an answer.
    #[cold]
    pub fn look(&mut self, data: &[u8]) -> Looked {
        let is_first = !self.has(Flag::HAS_RECEIVED);
        self.set(Flag::HAS_RECEIVED);
        let is_asked = self.has(Flag::ASKED);
        let status = is_asked.then(|| self.status.read(data)).flatten();
        if !is_asked || status.is_some() {
            self.flags.0 &= !(Flag::LOOKS.0 | Flag::ASKED.0);
        }
        Looked { is_first, status }
    }

    /// Whether anything arrived.
    pub fn has_received(&self) -> bool {
        self.has(Flag::HAS_RECEIVED)
    }

    /// Whether the peer is done.
    pub fn is_peer_closed(&self) -> bool {
        self.has(Flag::PEER_CLOSED)
    }

    /// Whether nothing is missing if it ends now: it waits for the end of the peer, for data of
    /// which nothing has come, or for what it sent to be acknowledged.
    pub fn is_between(&self) -> bool {
        match self.wait {
            Wait::PeerClosed | Wait::Acknowledged => true,
            Wait::Received | Wait::Looked => self.received.get() == 0,
            _ => false,
        }
    }

    /// How it came to its end.
    pub fn end_reached(&self) -> ProgramEnd {
        self.end
    }

    /// TCP: the same where the program still waits for more than arrived so far: it need not be
    /// asked. `false`, and nothing is noted, when it does not.
    #[inline]
    pub fn take_part(&mut self, program: &Program, bytes: u32) -> bool {
        let received = self.received.get() + u64::from(bytes);
        let is_part = match program.steps.get(usize::from(self.step)) {
            Some(ProgramCommand::Receive { bytes, .. }) => {
                self.wait == Wait::Received && received < *bytes
            }
            _ => false,
        };
        if is_part {
            self.received = Tight::new(received);
        }
        is_part
    }

    /// UDP: a message arrived.
    pub fn handle_message(&mut self) {
        self.received = Tight::new(self.received.get() + 1);
        self.go_on_with_received();
    }

    /// TCP: all that was sent is acknowledged.
    #[inline]
    pub fn handle_acknowledged(&mut self) {
        self.go_on_from(Wait::Acknowledged);
        self.go_on_from(Wait::Room);
    }

    /// TCP: there is room to send more; who sends without blocking goes on. To be said right
    /// after [`Action::Send`] too, when there is room.
    pub fn handle_room(&mut self) {
        self.go_on_from(Wait::Room);
    }

    /// The peer will send no more. What arrived before must have been said before.
    #[inline]
    pub fn handle_peer_closed(&mut self) {
        self.set(Flag::PEER_CLOSED);
        self.go_on_from(Wait::PeerClosed);
        self.go_on_with_received();
    }

    /// The time of [`Action::WakeAt`] has come.
    pub fn handle_timeout(&mut self) {
        self.go_on_from(Wait::Time);
    }

    /// The flow of [`Action::Execute`] is over, or could not be made. `next_group` is the group
    /// that its own program chose ([`next_group`](ProgramRun::next_group)), which this one goes
    /// on with; 0 leaves its own.
    pub fn handle_executed(&mut self, next_group: u16) {
        if self.wait == Wait::Executed && next_group != 0 {
            self.group = next_group;
        }
        self.go_on_from(Wait::Executed);
    }

    /// The group that `set_template` chose last; 0 for none.
    pub fn next_group(&self) -> u16 {
        self.group
    }

    /// The flow is cut off: it says nothing more.
    pub fn stop(&mut self) {
        self.wait = Wait::Over;
    }

    /// Whether it has nothing to do before it is told of something.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.wait != Wait::No
    }

    /// The group of the flow that it waits for ([`Action::Execute`]).
    #[inline]
    pub fn executes(&self) -> Option<u16> {
        (self.wait == Wait::Executed).then_some(self.group)
    }

    /// Whether it has said its last: no event brings another action.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.wait == Wait::Over
    }

    /// Gives back what it holds in the pool. The last thing before it is forgotten.
    pub fn release(&mut self, variables: &mut VariablePool) {
        variables.release(&mut self.variables);
    }

    /// What the flow shall do next; `None` when the program waits or is over.
    #[inline]
    pub fn poll_action(&mut self, cx: &mut ProgramContext<'_>) -> Option<Action> {
        while self.wait == Wait::No {
            if self.taken == TURN_COMMANDS_MAX {
                self.wait = Wait::Time;
                return Some(Action::WakeAt(cx.now + YIELD));
            }
            self.taken += 1;
            let Some(step) = cx.program.steps.get(usize::from(self.step)) else {
                return Some(self.end(ProgramEnd::Done, Action::Close));
            };
            let action = self.take(*step, cx);
            if action.is_some() {
                return action;
            }
        }
        None
    }

    /// What was waited for came, if it is this.
    #[inline]
    fn go_on_from(&mut self, wait: Wait) {
        if self.wait == wait {
            self.wait = Wait::No;
            self.taken = 0;
        }
    }

    fn set_blocking(&mut self, blocking: bool) {
        self.flags.0 &= !Flag::BLOCKING.0;
        if blocking {
            self.set(Flag::BLOCKING);
        }
    }

    #[inline]
    fn go_on_with_received(&mut self) {
        if matches!(self.wait, Wait::Received | Wait::Looked) {
            self.wait = Wait::No;
            self.taken = 0;
        }
    }

    fn end(&mut self, end: ProgramEnd, action: Action) -> Action {
        self.wait = Wait::Over;
        self.end = end;
        action
    }

    /// Takes a step. A step that is not finished leaves `step` where it is.
    #[inline]
    fn take(&mut self, step: ProgramCommand, cx: &mut ProgramContext<'_>) -> Option<Action> {
        match step {
            ProgramCommand::Receive { bytes, clear } => return self.receive(bytes, clear, cx),
            ProgramCommand::ReceiveMessages { messages, clear } => {
                return self.receive(messages, clear, cx);
            }
            ProgramCommand::Connect if !self.has(Flag::CONNECTED) => {
                self.wait = Wait::Connected;
                return None;
            }
            ProgramCommand::WaitForPeerClose if !self.has(Flag::PEER_CLOSED) => {
                self.wait = Wait::PeerClosed;
                return None;
            }
            ProgramCommand::Reset => return Some(self.end(ProgramEnd::Done, Action::Reset)),
            _ => self.step += 1,
        }
        match step {
            ProgramCommand::Send { buffer } => {
                let buffer = self.buffer(buffer, cx);
                Some(self.send(buffer, cx.program))
            }
            ProgramCommand::SendMessage { buffer } => Some(Action::SendMessage {
                buffer: self.buffer(buffer, cx),
            }),
            ProgramCommand::Delay { duration } => Some(self.sleep(cx.now, duration)),
            ProgramCommand::DelayRandom { min, max } => {
                let duration = random(cx.rng, min, max);
                Some(self.sleep(cx.now, duration))
            }
            ProgramCommand::Keepalive {
                timeout_ms,
                received_only,
            } => Some(Action::Keepalive {
                timeout_ms,
                received_only,
            }),
            // After the last of these the program is at its end, and closes.
            ProgramCommand::Connect | ProgramCommand::WaitForPeerClose => Some(Action::Acknowledge),
            ProgramCommand::CloseMessage => Some(self.end(ProgramEnd::Done, Action::Close)),
            ProgramCommand::ExecuteTemplate if self.group != 0 => Some(self.execute(cx)),
            ProgramCommand::SendMode { blocking } => {
                self.set_blocking(blocking);
                None
            }
            ProgramCommand::SetTemplate { group } => {
                // There are fewer than 65,536.
                self.group = group as u16;
                None
            }
            ProgramCommand::Jump {
                offset,
                condition: None,
            } => {
                self.jump_if(true, offset);
                None
            }
            ProgramCommand::AddStats { counter, value } => {
                add(cx, counter, value);
                None
            }
            _ => {
                self.compute(step, cx);
                None
            }
        }
    }

    #[inline]
    fn send(&mut self, buffer: BufferIndex, program: &Program) -> Action {
        if let Some(true) = program.requests.get(usize::from(self.step) - 1) {
            self.set(Flag(Flag::LOOKS.0 | Flag::ASKED.0));
            self.status = StatusLine::default();
        }
        self.wait = if self.has(Flag::BLOCKING) {
            Wait::Acknowledged
        } else {
            Wait::Room
        };
        Action::Send { buffer }
    }

    /// A buffer, or what this connection draws of it.
    #[inline]
    fn buffer(&mut self, buffer: u32, cx: &mut ProgramContext<'_>) -> BufferIndex {
        match buffer.checked_sub(DRAWN_FIRST) {
            None => BufferIndex(buffer),
            Some(place) => self.draw(place, cx),
        }
    }

    /// The variant of a buffer that this connection has. All that it draws belongs to one number,
    /// so that it says the same name each time.
    fn draw(&mut self, place: u32, cx: &mut ProgramContext<'_>) -> BufferIndex {
        let first = cx.program.drawn[0].first;
        let number = cx.variables.number(&mut self.variables, first);
        let drawn = &cx.program.drawn[place as usize];
        BufferIndex(drawn.variant_of(number))
    }

    /// The steps that work on variables.
    fn compute(&mut self, step: ProgramCommand, cx: &mut ProgramContext<'_>) {
        let tick = cx.now / TICK;
        let Variables { numbers, ticks, .. } = cx.variables.at(&mut self.variables);
        match step {
            ProgramCommand::SetVariable { variable, value } => numbers[variable as usize] = value,
            ProgramCommand::AddVariable { variable, value } => {
                let number = &mut numbers[variable as usize];
                *number = number.wrapping_add_signed(value);
            }
            ProgramCommand::SetTick { variable } => ticks[variable as usize] = tick,
            ProgramCommand::AddTick {
                variable,
                ticks: more,
            } => {
                let time = &mut ticks[variable as usize];
                *time = time.wrapping_add(more);
            }
            ProgramCommand::AddTickStats { counter, variable } => {
                let since = tick.wrapping_sub(ticks[variable as usize]);
                add(cx, counter, since);
            }
            ProgramCommand::JumpNotZero { variable, offset } => {
                let number = &mut numbers[variable as usize];
                *number = number.saturating_sub(1);
                self.jump_if(*number > 0, offset);
            }
            ProgramCommand::JumpWithin {
                variable,
                offset,
                ticks: within,
            } => {
                let since = tick.wrapping_sub(ticks[variable as usize]);
                self.jump_if(since < within, offset);
            }
            ProgramCommand::Jump {
                offset,
                condition: Some(condition),
            } => {
                let number = numbers[condition.variable as usize];
                let holds = condition.comparison.holds(number, condition.value);
                self.jump_if(holds, offset);
            }
            // `exec_template` without a group does nothing.
            _ => {}
        }
    }

    /// Jumps from the step before, which was the last to be taken. Where to was checked.
    fn jump_if(&mut self, condition: bool, offset: i64) {
        if condition {
            self.step = (i64::from(self.step) - 1 + offset) as u16;
        }
    }

    fn receive(&mut self, count: u64, clear: bool, cx: &ProgramContext<'_>) -> Option<Action> {
        let received = self.received.get();
        if received >= count {
            self.received = Tight::new(if clear { 0 } else { received - count });
            self.step += 1;
            return None;
        }
        if self.has(Flag::PEER_CLOSED) && cx.program.transport() == Transport::Stream {
            if count == UNTIL_CLOSE {
                self.received = Tight::new(0);
                self.step += 1;
                return None;
            }
            // What will never come is not waited for: the flow would stay for ever.
            let end = match received {
                0 => ProgramEnd::PeerClosedBetween,
                _ => ProgramEnd::PeerClosedWithin,
            };
            return Some(self.end(end, Action::Close));
        }
        self.wait = match self.has(Flag::LOOKS) {
            true => Wait::Looked,
            false => Wait::Received,
        };
        None
    }

    fn sleep(&mut self, now: Nanos, duration: Nanos) -> Action {
        self.wait = Wait::Time;
        Action::WakeAt(now + duration)
    }

    fn execute(&mut self, cx: &mut ProgramContext<'_>) -> Action {
        self.wait = Wait::Executed;
        cx.counters.flows_total += 1;
        if self.group_before != 0 && self.group_before != self.group {
            cx.counters.flows_other += 1;
        }
        self.group_before = self.group;
        Action::Execute { group: self.group }
    }
}

fn add(cx: &mut ProgramContext<'_>, counter: u32, value: u64) {
    let counter = &mut cx.counters.user[counter as usize];
    *counter = counter.wrapping_add(value);
}

/// A time from `min` to `max`, all alike.
fn random(rng: &mut Lcg, min: Nanos, max: Nanos) -> Nanos {
    // Four draws of 15 bits: delays are nanoseconds, and a year has 55 bits of them.
    let mut bits = 0_u64;
    for _ in 0..4 {
        bits = (bits << 15) | u64::from(rng.next15());
    }
    let span = u128::from(max - min) + 1;
    min + ((u128::from(bits) * span) >> 60) as Nanos
}
