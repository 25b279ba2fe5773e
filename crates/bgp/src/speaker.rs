//! Many sessions that announce the same tables: each table is encoded once for all sessions that agreed upon
//! the same encoding, and comes again to sessions that come up later or ask for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::replay::RouteReplay;
use crate::routes::table::RouteTable;
use crate::session::BgpSession;
use crate::session::config::{BgpConfigError, BgpSessionConfig};
use crate::session::event::BgpEvent;
use crate::session::negotiate::Negotiated;
use crate::stream::{EncodeError, RouteStream, StreamEncoding};
use crate::wire::prefix::AddressFamily;

/// Tables that may wait on a session, announcements and withdrawals together.
const QUEUED_MAX: u64 = 4096;

/// A session of a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BgpSessionId(pub usize);

/// Why routes were not announced or withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnnounceError {
    /// A table of that name is announced.
    #[error("routes: '{0}' is announced already; withdraw it first, or take another name")]
    NameTaken(String),
    /// There is none of that name.
    #[error("routes: no table '{0}' is announced; announced are: {1}")]
    Unknown(String, String),
    /// It cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A session has too much to send already.
    #[error(
        "routes: a session would have {0} tables to send, announcements and withdrawals together; the most is \
         4096: wait until some are sent, or flap fewer times"
    )]
    QueueFull(u64),
}

/// A table that is announced, and what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedInfo<'s> {
    /// Its name.
    pub name: &'s str,
    /// The family of its routes.
    pub family: AddressFamily,
    /// How many it has.
    pub routes: usize,
    /// Octets of its announcements and withdrawals, which sessions share.
    pub encoded_bytes: usize,
    /// Its rate, where it has one.
    pub routes_per_s: Option<u32>,
}

/// What is announced under a name.
#[derive(Debug)]
struct AnnouncedTable {
    table: Arc<RouteTable>,
    routes_per_s: Option<u32>,
    announcements: BTreeMap<StreamEncoding, Arc<RouteStream>>,
    withdrawals: BTreeMap<StreamEncoding, Arc<RouteStream>>,
}

impl AnnouncedTable {
    fn new(table: Arc<RouteTable>, routes_per_s: Option<u32>) -> Self {
        Self {
            table,
            routes_per_s,
            announcements: BTreeMap::new(),
            withdrawals: BTreeMap::new(),
        }
    }

    fn announcement(&mut self, encoding: StreamEncoding) -> Result<Arc<RouteStream>, EncodeError> {
        if let Some(stream) = self.announcements.get(&encoding) {
            return Ok(Arc::clone(stream));
        }
        let stream = Arc::new(RouteStream::announce(&self.table, encoding)?);
        self.announcements.insert(encoding, Arc::clone(&stream));
        Ok(stream)
    }

    fn withdrawal(&mut self, encoding: StreamEncoding) -> Arc<RouteStream> {
        let make = || Arc::new(RouteStream::withdraw(&self.table, encoding));
        Arc::clone(self.withdrawals.entry(encoding).or_insert_with(make))
    }

    fn memory(&self) -> usize {
        let streams = self.announcements.values().chain(self.withdrawals.values());
        streams.map(|stream| stream.memory()).sum()
    }
}

/// Sessions and what they announce.
///
/// Drive each session by [`session_mut`](Self::session_mut), and drain its events by
/// [`poll_event`](Self::poll_event) of the speaker, which queues routes where they are due.
#[derive(Debug, Default)]
pub struct BgpSpeaker {
    sessions: BTreeMap<BgpSessionId, BgpSession>,
    next_session: usize,
    tables: BTreeMap<String, AnnouncedTable>,
    faults: VecDeque<(BgpSessionId, EncodeError)>,
}

impl BgpSpeaker {
    /// Adds a session, which waits to be started; `seed` spreads its timers.
    ///
    /// # Errors
    /// Where the configuration says what no session can be.
    pub fn add_session(
        &mut self,
        config: BgpSessionConfig,
        seed: u64,
    ) -> Result<BgpSessionId, BgpConfigError> {
        let id = BgpSessionId(self.next_session);
        self.sessions.insert(id, BgpSession::new(config, seed)?);
        self.next_session += 1;
        Ok(id)
    }

    /// Removes a session at once. Who wants the peer to be told [stops](BgpSession::stop) it before, and sends
    /// what it still gives.
    pub fn remove_session(&mut self, id: BgpSessionId) -> Option<BgpSession> {
        self.faults.retain(|(of, _)| *of != id);
        self.sessions.remove(&id)
    }

    /// Announces a table on all sessions, now and whenever one comes up, at a rate in routes per second or as
    /// fast as peers take it.
    ///
    /// # Errors
    /// Where the name is taken, or a session could not carry the routes; then none gets them.
    pub fn announce(
        &mut self,
        name: &str,
        table: Arc<RouteTable>,
        routes_per_s: Option<u32>,
    ) -> Result<(), AnnounceError> {
        if self.tables.contains_key(name) {
            return Err(AnnounceError::NameTaken(name.to_owned()));
        }
        self.check_queues(1)?;
        let mut announced = AnnouncedTable::new(table, routes_per_s);
        for session in self.sessions.values() {
            if let Some(encoding) = shared_encoding(session, announced.table.family()) {
                announced.announcement(encoding)?;
            }
        }
        self.tables.insert(name.to_owned(), announced);
        let ids: Vec<BgpSessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            self.queue_table(id, name);
        }
        Ok(())
    }

    /// Withdraws a table on all sessions, and forgets it.
    ///
    /// # Errors
    /// Where no table has that name, or a session has too much to send already.
    pub fn withdraw(&mut self, name: &str, routes_per_s: Option<u32>) -> Result<(), AnnounceError> {
        self.check_known(name)?;
        self.check_queues(1)?;
        let Some(mut announced) = self.tables.remove(name) else {
            return Err(self.unknown(name));
        };
        self.queue_withdrawals(&mut announced, routes_per_s);
        Ok(())
    }

    /// Withdraws so much of a table, 0 to 1, and announces it again on all sessions, so many times, both at a
    /// rate in routes per second.
    ///
    /// # Errors
    /// Where no table has that name, or a session would have too much to send.
    pub fn flap(
        &mut self,
        name: &str,
        times: u32,
        routes_per_s: u32,
        share: f64,
    ) -> Result<(), AnnounceError> {
        self.check_known(name)?;
        self.check_queues(2 * u64::from(times))?;
        let Some(announced) = self.tables.get_mut(name) else {
            return Err(self.unknown(name));
        };
        let mut part;
        let flapping = if share < 1.0 {
            // It is kept by the queues alone.
            part = AnnouncedTable::new(Arc::new(announced.table.share(share)), None);
            &mut part
        } else {
            announced
        };
        for session in self.sessions.values_mut() {
            let Some(encoding) = shared_encoding(session, flapping.table.family()) else {
                continue;
            };
            let withdrawal = flapping.withdrawal(encoding);
            let announcement = flapping.announcement(encoding)?;
            let replay = |stream| RouteReplay::new(Arc::clone(stream), Some(routes_per_s));
            for _ in 0..times {
                session.withdraw(replay(&withdrawal));
                session.announce(replay(&announcement));
            }
        }
        Ok(())
    }

    /// Gives the routes of a table the attributes that `table` has for them: prefixes that it lacks are not
    /// withdrawn.
    ///
    /// # Errors
    /// Where no table has that name, or a session could not carry the routes; then nothing changes.
    pub fn replace(&mut self, name: &str, table: Arc<RouteTable>) -> Result<(), AnnounceError> {
        let Some(before) = self.tables.remove(name) else {
            return Err(self.unknown(name));
        };
        let routes_per_s = before.routes_per_s;
        let replaced = self.announce(name, table, routes_per_s);
        if replaced.is_err() {
            self.tables.insert(name.to_owned(), before);
        }
        replaced
    }

    /// What happened next on a session. Tables were queued for it where they were due.
    pub fn poll_event(&mut self, id: BgpSessionId) -> Option<BgpEvent> {
        let event = self.sessions.get_mut(&id)?.poll_event()?;
        match &event {
            BgpEvent::Established(negotiated) => {
                for family in negotiated.families.clone() {
                    self.queue_family(id, family);
                }
            }
            BgpEvent::RefreshRequested(family) => self.queue_family(id, *family),
            _ => {}
        }
        Some(event)
    }

    /// A table that a session which came up later could not carry.
    pub fn poll_fault(&mut self) -> Option<(BgpSessionId, EncodeError)> {
        self.faults.pop_front()
    }

    /// A session, to be driven.
    ///
    /// # Panics
    /// Where it was removed.
    pub fn session_mut(&mut self, id: BgpSessionId) -> &mut BgpSession {
        self.sessions
            .get_mut(&id)
            .expect("a session that was not removed")
    }

    /// A session, if it was not removed.
    pub fn session(&self, id: BgpSessionId) -> Option<&BgpSession> {
        self.sessions.get(&id)
    }

    /// All sessions, in the order in which they were added.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = (BgpSessionId, &BgpSession)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    /// What is announced, by name.
    pub fn tables(&self) -> impl Iterator<Item = AnnouncedInfo<'_>> {
        self.tables.iter().map(|(name, announced)| AnnouncedInfo {
            name,
            family: announced.table.family(),
            routes: announced.table.len(),
            encoded_bytes: announced.memory(),
            routes_per_s: announced.routes_per_s,
        })
    }

    /// Octets of encoded tables, which all sessions share.
    pub fn shared_memory(&self) -> usize {
        self.tables.values().map(AnnouncedTable::memory).sum()
    }

    fn check_known(&self, name: &str) -> Result<(), AnnounceError> {
        match self.tables.contains_key(name) {
            true => Ok(()),
            false => Err(self.unknown(name)),
        }
    }

    /// Whether each session has room for so many more tables to send.
    fn check_queues(&self, more: u64) -> Result<(), AnnounceError> {
        let queued = self.sessions.values().map(BgpSession::queued);
        let most = queued.max().unwrap_or(0) as u64 + more;
        match most > QUEUED_MAX {
            true => Err(AnnounceError::QueueFull(most)),
            false => Ok(()),
        }
    }

    fn unknown(&self, name: &str) -> AnnounceError {
        let names: Vec<&str> = self.tables.keys().map(String::as_str).collect();
        let names = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        AnnounceError::Unknown(name.to_owned(), names)
    }

    /// All tables of a family, and the marker that these were all.
    fn queue_family(&mut self, id: BgpSessionId, family: AddressFamily) {
        let of_family = |(_, table): &(&String, &AnnouncedTable)| table.table.family() == family;
        let names: Vec<String> = self
            .tables
            .iter()
            .filter(of_family)
            .map(|(n, _)| n.clone())
            .collect();
        for name in names {
            self.queue_table(id, &name);
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.end_of_rib(family);
        }
    }

    fn queue_table(&mut self, id: BgpSessionId, name: &str) {
        let found = (self.sessions.get_mut(&id), self.tables.get_mut(name));
        let (Some(session), Some(announced)) = found else {
            return;
        };
        let Some(encoding) = shared_encoding(session, announced.table.family()) else {
            return;
        };
        match announced.announcement(encoding) {
            Ok(stream) => {
                session.announce(RouteReplay::new(stream, announced.routes_per_s));
            }
            Err(error) => self.faults.push_back((id, error)),
        }
    }

    fn queue_withdrawals(&mut self, announced: &mut AnnouncedTable, routes_per_s: Option<u32>) {
        for session in self.sessions.values_mut() {
            if let Some(encoding) = shared_encoding(session, announced.table.family()) {
                let stream = announced.withdrawal(encoding);
                session.withdraw(RouteReplay::new(stream, routes_per_s));
            }
        }
    }
}

/// How routes of a family are written for a session; `None` where it has not that family.
fn shared_encoding(session: &BgpSession, family: AddressFamily) -> Option<StreamEncoding> {
    let negotiated: &Negotiated = session.negotiated()?;
    let has_family = negotiated.families.contains(&family);
    has_family.then_some(negotiated.encoding)
}
