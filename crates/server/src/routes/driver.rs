//! What the thread does with requests, with sockets that are ready, and when something is due.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use allosaur_api::commands::routes::{RoutesAnnounced, RoutesShown};
use allosaur_bgp::routes::table::RouteTable;
use allosaur_bgp::speaker::BgpSessionId;

use super::connection::family_of;
use super::request::{RouteAnswer, RouteRequest, RouteResult, SessionSpec, SpeakerSpec};
use super::sockets::{BgpSockets, SessionKey, SocketEvent, SocketOwner, SpeakerId};
use super::speaker::Speaker;

/// Most sessions of all speakers.
const SESSIONS_MAX: usize = 20_000;
/// What is read of a socket at once.
const READ_BYTES: usize = 64 * 1024;

/// All speakers.
///
/// Call [`handle_request`](Self::handle_request), [`handle_ready`](Self::handle_ready) and, at the time of
/// [`poll_timeout`](Self::poll_timeout), [`handle_timeout`](Self::handle_timeout). None of them waits.
#[derive(Debug)]
pub(super) struct RouteDriver<S> {
    pub(super) sockets: S,
    speakers: BTreeMap<SpeakerId, Speaker>,
    next_speaker: u32,
    /// When sessions must be looked after.
    due: BTreeSet<(u64, SessionKey)>,
    buffer: Vec<u8>,
    seed: u64,
}

impl<S: BgpSockets> RouteDriver<S> {
    /// Without speakers. The seed spreads timers of sessions.
    pub(super) fn new(sockets: S, seed: u64) -> RouteDriver<S> {
        RouteDriver {
            sockets,
            speakers: BTreeMap::new(),
            next_speaker: 0,
            due: BTreeSet::new(),
            buffer: vec![0; READ_BYTES],
            seed,
        }
    }

    /// Does what is asked.
    pub(super) fn handle_request(&mut self, request: RouteRequest, now_ns: u64) -> RouteResult {
        match request {
            RouteRequest::AddSpeaker(spec) => self.add_speaker(spec),
            RouteRequest::AddSession { speaker, session } => {
                self.add_session(&speaker, *session, now_ns)
            }
            RouteRequest::Announce {
                speaker,
                name,
                table,
                rate,
            } => self.announce(&speaker, &name, table, rate, now_ns),
            RouteRequest::Withdraw {
                speaker,
                name,
                rate,
            } => {
                let id = self.find(&speaker)?;
                let bgp = &mut self.speaker_mut(id).bgp;
                bgp.withdraw(&name, rate).map_err(|e| e.to_string())?;
                self.send_queued(id, now_ns);
                Ok(RouteAnswer::Done)
            }
            RouteRequest::Flap {
                speaker,
                name,
                times,
                rate,
                share,
            } => {
                let id = self.find(&speaker)?;
                let bgp = &mut self.speaker_mut(id).bgp;
                let queued = bgp.flap(&name, times, rate, share);
                queued.map_err(|e| e.to_string())?;
                self.send_queued(id, now_ns);
                Ok(RouteAnswer::Done)
            }
            RouteRequest::Show { speaker } => self.show(speaker.as_deref(), now_ns),
            RouteRequest::Remove { speaker, peer } => self.remove(&speaker, peer, now_ns),
        }
    }

    /// A socket is ready.
    pub(super) fn handle_ready(&mut self, event: SocketEvent, now_ns: u64) {
        match event.owner {
            SocketOwner::Listener(id) => {
                let Some(speaker) = self.speakers.get_mut(&id) else {
                    return;
                };
                let accepted = speaker.accept(event.key, &mut self.sockets, now_ns);
                for session in &accepted {
                    speaker.drive(*session, &mut self.sockets, now_ns);
                }
                for session in accepted {
                    self.set_due(id, session, now_ns);
                }
            }
            SocketOwner::Session(SessionKey { speaker, session }) => {
                let Some(found) = self.speakers.get_mut(&speaker) else {
                    return;
                };
                found.handle_ready(session, event, &mut self.sockets, &mut self.buffer, now_ns);
                self.set_due(speaker, session, now_ns);
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.due.first().map(|(due_ns, _)| *due_ns)
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now_ns: u64) {
        // Those that are due again at once have their turn next time.
        let is_due = |(due_ns, _): &&(u64, SessionKey)| *due_ns <= now_ns;
        let due: Vec<SessionKey> = self
            .due
            .iter()
            .take_while(is_due)
            .map(|(_, key)| *key)
            .collect();
        for SessionKey { speaker, session } in due {
            if let Some(found) = self.speakers.get_mut(&speaker) {
                found.handle_timeout(session, &mut self.sockets, now_ns);
            }
            self.set_due(speaker, session, now_ns);
        }
    }

    /// Ends all sessions; peers are told.
    pub(super) fn end(&mut self, now_ns: u64) {
        for speaker in self.speakers.values_mut() {
            speaker.end(&mut self.sockets, now_ns);
        }
        self.speakers.clear();
        self.due.clear();
    }

    fn add_speaker(&mut self, spec: SpeakerSpec) -> RouteResult {
        if self.find(&spec.name).is_ok() {
            return Err(format!(
                "'name' is '{}', and a speaker of that name is there: remove it first (routes_remove), or take \
                 another name",
                spec.name
            ));
        }
        let id = SpeakerId(self.next_speaker);
        self.next_speaker += 1;
        self.speakers.insert(id, Speaker::new(id, spec));
        Ok(RouteAnswer::Done)
    }

    fn add_session(&mut self, speaker: &str, session: SessionSpec, now_ns: u64) -> RouteResult {
        let id = self.find(speaker)?;
        let sessions = self.speakers.values().map(|one| one.bgp.sessions().len());
        if sessions.sum::<usize>() >= SESSIONS_MAX {
            return Err(format!(
                "there are {SESSIONS_MAX} sessions, which is the most: remove some first (routes_remove)"
            ));
        }
        self.seed = self.seed.wrapping_add(1);
        let seed = self.seed;
        let speaker = self.speakers.get_mut(&id).expect("it was found");
        let session = speaker.add_session(session, seed, &mut self.sockets, now_ns)?;
        speaker.drive(session, &mut self.sockets, now_ns);
        self.set_due(id, session, now_ns);
        Ok(RouteAnswer::Done)
    }

    fn announce(
        &mut self,
        speaker: &str,
        name: &str,
        table: Arc<RouteTable>,
        rate: Option<u32>,
        now_ns: u64,
    ) -> RouteResult {
        let id = self.find(speaker)?;
        let (routes, family) = (table.len(), family_of(table.family()));
        let bgp = &mut self.speaker_mut(id).bgp;
        let announced = bgp.announce(name, table, rate);
        announced.map_err(|error| error.to_string())?;
        let sessions = self.send_queued(id, now_ns);
        Ok(RouteAnswer::Announced(RoutesAnnounced {
            routes,
            family,
            sessions,
        }))
    }

    fn show(&self, speaker: Option<&str>, now_ns: u64) -> RouteResult {
        let wanted = speaker.map(|name| self.find(name)).transpose()?;
        let speakers = self.speakers.iter();
        let shown = speakers.filter(|(id, _)| wanted.is_none_or(|wanted| wanted == **id));
        let mut speakers: Vec<_> = shown
            .map(|(_, speaker)| speaker.info(&self.sockets, now_ns))
            .collect();
        speakers.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(RouteAnswer::Shown(RoutesShown { speakers }))
    }

    fn remove(&mut self, speaker: &str, peer: Option<IpAddr>, now_ns: u64) -> RouteResult {
        let id = self.find(speaker)?;
        let found = self.speakers.get_mut(&id).expect("it was found");
        match peer {
            Some(peer) => {
                let session = found.session_with(peer).ok_or_else(|| {
                    format!(
                        "'peer' is {peer}, and speaker '{speaker}' has no session with it: routes_show lists them"
                    )
                })?;
                found.remove_session(session, &mut self.sockets, now_ns);
                self.forget_due(|key| (key.speaker, key.session) == (id, session));
            }
            None => {
                found.end(&mut self.sockets, now_ns);
                self.speakers.remove(&id);
                self.forget_due(|key| key.speaker == id);
            }
        }
        Ok(RouteAnswer::Done)
    }

    fn forget_due(&mut self, is_gone: impl Fn(SessionKey) -> bool) {
        self.due.retain(|(_, key)| !is_gone(*key));
    }

    fn find(&self, name: &str) -> Result<SpeakerId, String> {
        let mut speakers = self.speakers.iter();
        let found = speakers.find(|(_, speaker)| speaker.name() == name);
        found.map(|(id, _)| *id).ok_or_else(|| {
            let names: Vec<&str> = self.speakers.values().map(Speaker::name).collect();
            let there = match names.is_empty() {
                true => "there is none".to_owned(),
                false => format!("there are {}", names.join(", ")),
            };
            format!("no speaker has the name '{name}' ({there}): add it first (routes_add_speaker)")
        })
    }

    fn speaker_mut(&mut self, id: SpeakerId) -> &mut Speaker {
        self.speakers.get_mut(&id).expect("it was found")
    }

    fn send_queued(&mut self, id: SpeakerId, now_ns: u64) -> usize {
        let speaker = self.speakers.get_mut(&id).expect("it was found");
        let established = speaker.send_queued(&mut self.sockets, now_ns);
        for session in speaker.session_ids() {
            self.set_due(id, session, now_ns);
        }
        established
    }

    /// Notes when a session must be looked after next.
    fn set_due(&mut self, id: SpeakerId, session: BgpSessionId, now_ns: u64) {
        let key = SessionKey {
            speaker: id,
            session,
        };
        let Some(speaker) = self.speakers.get_mut(&id) else {
            return;
        };
        let due_ns = speaker.poll_timeout(session, now_ns);
        let Some(connection) = speaker.connection_mut(session) else {
            return;
        };
        if connection.due_ns == due_ns {
            return;
        }
        if let Some(before_ns) = connection.due_ns {
            self.due.remove(&(before_ns, key));
        }
        connection.due_ns = due_ns;
        self.due.extend(due_ns.map(|due_ns| (due_ns, key)));
    }
}
