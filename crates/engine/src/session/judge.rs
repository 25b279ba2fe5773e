//! How a flow ended: it is judged once.
//!
//! Most are judged when their program comes to its end with all acknowledged: whatever comes
//! later changes nothing. The others are judged when they are over, by how their transport ended.

use super::application::FlowApplication;
use super::context::{FlowContext, Pools};
use super::flow::{FlowTransport, Session, SessionFlag};
use super::outcome::FlowOutcome;
use crate::app::ProgramEnd;
use crate::tcp::End;

/// What a flow's application says of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ending {
    end: ProgramEnd,
    is_peer_closed: bool,
    has_received: bool,
    /// See [`is_between`](crate::app::ProgramRun::is_between).
    is_between: bool,
}

impl Session {
    /// Whether it was judged, and counted.
    #[inline]
    pub fn is_judged(&self) -> bool {
        self.flags.has(SessionFlag::Judged)
    }

    /// Whether we asked for it.
    #[inline]
    pub(super) fn is_client(&self) -> bool {
        self.flags.has(SessionFlag::Client)
    }

    fn ending(&self, pools: &Pools) -> Ending {
        match &self.application {
            FlowApplication::Program(program) => Ending {
                end: program.end_reached(),
                is_peer_closed: program.is_peer_closed(),
                has_received: program.has_received(),
                is_between: program.is_between(),
            },
            FlowApplication::Bytes(index) => {
                let it = pools.applications.look(*index);
                let it = it.expect("it has done its work");
                Ending {
                    end: it.end,
                    is_peer_closed: it.was_peer_closed,
                    has_received: it.has_received,
                    is_between: false,
                }
            }
        }
    }

    /// Its program, or application, came to its end: what it ended by is known where nothing of it can
    /// be lost any more.
    pub(super) fn note_program_end(&mut self, cx: &mut FlowContext<'_>) {
        let ending = self.ending(cx.pools);
        let outcome = match ending.end {
            ProgramEnd::None => return,
            ProgramEnd::PeerClosedWithin => FlowOutcome::ClosedEarly,
            ProgramEnd::PeerClosedBetween if self.is_client() => FlowOutcome::ClosedEarly,
            // It resets the connection itself.
            ProgramEnd::Done if self.resets_itself() => FlowOutcome::Completed,
            ProgramEnd::Done | ProgramEnd::PeerClosedBetween => {
                let is_there = self.flags.has(SessionFlag::Connected);
                if !is_there || !self.outbox.is_empty() {
                    return;
                }
                FlowOutcome::Completed
            }
            ProgramEnd::Failed => failure(ending),
        };
        self.judge_by(cx, outcome, ending);
    }

    /// It is over, or only waits in TIME-WAIT: from now on its outcome is known. To be called before it
    /// gives back what it holds. `may_be_reset` says that its peer's program ends by a reset.
    #[inline(never)]
    pub fn judge(&mut self, cx: &mut FlowContext<'_>, may_be_reset: bool) {
        let ending = self.ending(cx.pools);
        let outcome = self.outcome(ending, may_be_reset);
        self.judge_by(cx, outcome, ending);
    }

    /// Whether it was its application that had it reset.
    fn resets_itself(&self) -> bool {
        let by_others = self.flags.has(SessionFlag::CutOff) || self.flags.has(SessionFlag::GivenUp);
        self.was_reset_by_us() && !by_others
    }

    fn judge_by(&mut self, cx: &mut FlowContext<'_>, outcome: FlowOutcome, ending: Ending) {
        if self.is_judged() {
            return;
        }
        self.flags.set(SessionFlag::Judged);
        cx.counters.outcomes.count(outcome);
        if !ending.has_received && cx.program.receives() {
            cx.counters.outcomes.unanswered += 1;
        }
        if outcome == FlowOutcome::Completed && self.is_client() {
            let units = self.begin_time.units_since(cx.now);
            cx.times.program.count(units);
        }
    }

    /// How it ended; to be asked when it is over.
    fn outcome(&self, ending: Ending, may_be_reset: bool) -> FlowOutcome {
        let is_acknowledged = match &self.transport {
            FlowTransport::Tcp(connection) => connection.has_all_acknowledged(),
            FlowTransport::Udp(_) => true,
        };
        match ending.end {
            ProgramEnd::Done if is_acknowledged => return FlowOutcome::Completed,
            ProgramEnd::PeerClosedBetween if is_acknowledged && !self.is_client() => {
                return FlowOutcome::Completed;
            }
            _ => {}
        }
        let ended = match &self.transport {
            FlowTransport::Tcp(connection) => connection.ended(),
            FlowTransport::Udp(udp) if udp.is_refused() => Some((End::Reset, true)),
            FlowTransport::Udp(_) => Some((End::TimedOut, false)),
        };
        let is_datagram = matches!(self.transport, FlowTransport::Udp(_));
        match ended {
            Some((End::TimedOut, _)) if !is_datagram => FlowOutcome::TimedOut,
            _ if self.flags.has(SessionFlag::CutOff) => FlowOutcome::CutOff,
            _ if self.flags.has(SessionFlag::GivenUp) => FlowOutcome::Aborted,
            Some((End::TimedOut, _)) => FlowOutcome::TimedOut,
            Some((End::Reset, true)) => FlowOutcome::Refused,
            Some((End::Reset, false)) if ending.is_peer_closed => FlowOutcome::ClosedEarly,
            Some((End::Reset, false)) if may_be_reset && is_acknowledged && ending.is_between => {
                FlowOutcome::Completed
            }
            Some((End::Reset, false)) => FlowOutcome::Reset,
            Some((End::Closed, _)) => failure(ending),
            Some((End::CutOff, _)) | None => FlowOutcome::CutOff,
        }
    }
}

/// It ended in order, but its application had not come to its end.
fn failure(ending: Ending) -> FlowOutcome {
    match ending.is_peer_closed {
        true => FlowOutcome::ClosedEarly,
        false => FlowOutcome::Aborted,
    }
}
