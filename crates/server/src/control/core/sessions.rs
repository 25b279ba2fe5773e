//! Sessions: who is connected, and the events that each has not fetched yet.
//!
//! The rules, which clients rely on: a session's sequence numbers have no gaps; what is not
//! queued has no number.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_api::events::{Event, QueuedEvent};
use allosaur_api::limits::{EVENTS_MAX, SESSION_SILENCE_S_MAX, SESSIONS_MAX};
use allosaur_engine::time::{Nanos, SECOND};

use crate::control::worker_command::PortMode;

/// A session with events to fetch that is silent for longer is taken for gone.
const SILENCE_MAX: Nanos = SESSION_SILENCE_S_MAX * SECOND;

/// All sessions.
#[derive(Debug, Default)]
pub(in crate::control) struct Sessions {
    by_id: HashMap<u32, Session>,
}

#[derive(Debug)]
struct Session {
    /// What it is for; who is for streams hears nothing of flows.
    mode: PortMode,
    /// With their sequence numbers; the events are shared, as all sessions hear the same.
    queue: VecDeque<(u64, Arc<Event>)>,
    next_seq: u64,
    /// Since when it is expected to ask: when it was last heard, or when the first event that
    /// waits was queued, whichever is later. Who has nothing to fetch may be silent for long.
    expected_ns: Nanos,
}

impl Sessions {
    /// Makes sure that a session is known, and that it counts as heard from, in a mode. `owns` says which
    /// sessions own a port: those are never forgotten to make room.
    pub(in crate::control) fn touch(
        &mut self,
        (id, mode): (u32, PortMode),
        now_ns: Nanos,
        owns: impl Fn(u32) -> bool,
    ) -> Result<(), Error> {
        if let Some(session) = self.by_id.get_mut(&id) {
            session.mode = mode;
            session.expected_ns = now_ns;
            return Ok(());
        }
        if self.by_id.len() >= SESSIONS_MAX {
            self.forget_one(owns)?;
        }
        let session = Session {
            mode,
            queue: VecDeque::new(),
            next_seq: 0,
            expected_ns: now_ns,
        };
        self.by_id.insert(id, session);
        Ok(())
    }

    /// Takes all events out of a session's queue.
    pub(in crate::control) fn take(&mut self, id: u32) -> Vec<QueuedEvent> {
        let Some(session) = self.by_id.get_mut(&id) else {
            return Vec::new();
        };
        let events = session.queue.drain(..);
        events
            .map(|(seq, event)| QueuedEvent::new(Event::clone(&event), seq))
            .collect()
    }

    /// Whether a session has fetched all its events, or is not there.
    pub(in crate::control) fn has_fetched(&self, id: u32) -> bool {
        let session = self.by_id.get(&id);
        session.is_none_or(|session| session.queue.is_empty())
    }

    /// Whether a session that had fetched everything has the server's end still to fetch.
    pub(in crate::control) fn have_unread_end(&self) -> bool {
        let mut sessions = self.by_id.values();
        sessions.any(|session| {
            let first = session.queue.front();
            first.is_some_and(|(_, event)| matches!(**event, Event::ServerStopped { .. }))
        })
    }

    /// Queues an event for every session that still listens, and whose mode has such events.
    pub(in crate::control) fn queue(
        &mut self,
        event: Event,
        now_ns: Nanos,
        owns: impl Fn(u32) -> bool,
    ) {
        self.by_id
            .retain(|id, session| !session.is_silent(now_ns) || owns(*id));
        let event = Arc::new(event);
        let sessions = self.by_id.values_mut();
        let hears =
            |session: &&mut Session| session.mode == PortMode::Stateful || !event.is_of_flows();
        for session in sessions.filter(hears) {
            session.queue(&event, now_ns);
        }
    }

    fn forget_one(&mut self, owns: impl Fn(u32) -> bool) -> Result<(), Error> {
        let readers = self.by_id.iter().filter(|(id, _)| !owns(**id));
        let oldest = readers.min_by_key(|(_, session)| session.expected_ns);
        let Some(id) = oldest.map(|(id, _)| *id) else {
            let text = format!(
                "there are {SESSIONS_MAX} sessions that own ports, which is the most: release a \
                 port first"
            );
            return Err(Error::execution(text));
        };
        self.by_id.remove(&id);
        Ok(())
    }
}

impl Session {
    fn queue(&mut self, event: &Arc<Event>, now_ns: Nanos) {
        if self.is_silent(now_ns) || self.queue.len() >= EVENTS_MAX {
            return;
        }
        if self.queue.is_empty() {
            self.expected_ns = now_ns;
        }
        self.queue.push_back((self.next_seq, Arc::clone(event)));
        self.next_seq += 1;
    }

    fn is_silent(&self, now_ns: Nanos) -> bool {
        !self.queue.is_empty() && now_ns.saturating_sub(self.expected_ns) > SILENCE_MAX
    }
}

#[cfg(test)]
mod tests {
    use allosaur_api::events::StatefulPhase;

    use super::*;

    const STREAMS: PortMode = PortMode::Stateless;
    const EVENT: Event = Event::PortStarted { port: 0 };

    fn seqs(sessions: &mut Sessions, id: u32) -> Vec<u64> {
        let events = sessions.take(id);
        events.iter().map(|event| event.seq).collect()
    }

    #[test]
    fn sequence_numbers_have_no_gaps() {
        let mut sessions = Sessions::default();
        sessions.touch((1, STREAMS), 0, |_| true).expect("room");
        for _ in 0..EVENTS_MAX + 10 {
            sessions.queue(EVENT, 0, |_| true);
        }
        assert_eq!(
            seqs(&mut sessions, 1).last(),
            Some(&(EVENTS_MAX as u64 - 1))
        );
        sessions.queue(EVENT, 0, |_| true);
        assert_eq!(seqs(&mut sessions, 1), [EVENTS_MAX as u64]);
    }

    #[test]
    fn a_silent_reader_is_forgotten_and_a_silent_owner_waits() {
        let mut sessions = Sessions::default();
        for id in [1, 2] {
            sessions.touch((id, STREAMS), 0, |_| false).expect("room");
        }
        let owns = |id| id == 1;
        sessions.queue(EVENT, 0, owns);
        sessions.queue(EVENT, SILENCE_MAX + 1, owns);
        assert_eq!(seqs(&mut sessions, 1), [0]);
        assert_eq!(seqs(&mut sessions, 2), [] as [u64; 0]);
        sessions
            .touch((1, STREAMS), SILENCE_MAX + 2, owns)
            .expect("room");
        sessions.queue(EVENT, SILENCE_MAX + 2, owns);
        assert_eq!(seqs(&mut sessions, 1), [1]);
    }

    #[test]
    fn who_had_nothing_to_fetch_was_not_silent() {
        let mut sessions = Sessions::default();
        for id in [1, 2] {
            sessions.touch((id, STREAMS), 0, |_| false).expect("room");
        }
        let later = 5 * SILENCE_MAX;
        for n in 0..3 {
            sessions.queue(EVENT, later + n, |id| id == 1);
        }
        assert_eq!(seqs(&mut sessions, 1), [0, 1, 2]);
        assert_eq!(seqs(&mut sessions, 2), [0, 1, 2]);
    }

    #[test]
    fn the_longest_silent_reader_makes_room() {
        let mut sessions = Sessions::default();
        for id in 0..SESSIONS_MAX as u32 {
            sessions
                .touch((id, STREAMS), u64::from(id), |_| false)
                .expect("room");
        }
        assert!(sessions.touch((9999, STREAMS), 0, |_| true).is_err());
        sessions
            .touch((9999, STREAMS), 0, |id| id == 0)
            .expect("reader 1 goes");
        sessions.queue(EVENT, 0, |_| true);
        assert_eq!(seqs(&mut sessions, 0), [0]);
        assert_eq!(seqs(&mut sessions, 1), [] as [u64; 0]);
    }

    #[test]
    fn who_is_for_streams_hears_nothing_of_flows() {
        let mut sessions = Sessions::default();
        for who in [(1, STREAMS), (2, PortMode::Stateful)] {
            sessions.touch(who, 0, |_| false).expect("room");
        }
        let state = Event::StatefulState {
            state: StatefulPhase::Loaded,
            epoch: 1,
        };
        sessions.queue(state, 0, |_| false);
        sessions.queue(EVENT, 0, |_| false);
        assert_eq!(seqs(&mut sessions, 1), [0]);
        assert_eq!(seqs(&mut sessions, 2), [0, 1]);
    }
}
