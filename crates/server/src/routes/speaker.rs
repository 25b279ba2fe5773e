//! A speaker with its connections and the sockets on which it waits for peers.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use allosaur_api::commands::routes::{AnnouncedTableInfo, SpeakerInfo};
use allosaur_bgp::session::event::{BgpEvent, BgpState};
use allosaur_bgp::speaker::{BgpSessionId, BgpSpeaker};

use super::connection::{Connection, Link, Written, family_of};
use super::request::{SessionSpec, SpeakerSpec};
use super::sockets::{BgpSockets, Dial, SessionKey, SocketEvent, SocketKey, SpeakerId};

/// Times that a socket is read before others have their turn.
const READS_PER_TURN: usize = 16;

/// A speaker.
#[derive(Debug)]
pub(super) struct Speaker {
    id: SpeakerId,
    spec: SpeakerSpec,
    pub(super) bgp: BgpSpeaker,
    connections: BTreeMap<BgpSessionId, Connection>,
    /// Where it waits for peers of IPv4, and of IPv6.
    listeners: [Option<SocketKey>; 2],
}

impl Speaker {
    /// Without sessions.
    pub(super) fn new(id: SpeakerId, spec: SpeakerSpec) -> Speaker {
        Speaker {
            id,
            spec,
            bgp: BgpSpeaker::default(),
            connections: BTreeMap::new(),
            listeners: [None, None],
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    /// The session with a peer.
    pub(super) fn session_with(&self, peer: IpAddr) -> Option<BgpSessionId> {
        let mut connections = self.connections.iter();
        let found = connections.find(|(_, connection)| connection.peer.ip() == peer);
        found.map(|(id, _)| *id)
    }

    /// All sessions.
    pub(super) fn session_ids(&self) -> Vec<BgpSessionId> {
        self.connections.keys().copied().collect()
    }

    /// A connection.
    pub(super) fn connection_mut(&mut self, id: BgpSessionId) -> Option<&mut Connection> {
        self.connections.get_mut(&id)
    }

    /// Adds a session, which begins to connect or to wait.
    pub(super) fn add_session(
        &mut self,
        spec: SessionSpec,
        seed: u64,
        sockets: &mut impl BgpSockets,
        now_ns: u64,
    ) -> Result<BgpSessionId, String> {
        let peer = spec.peer.ip();
        if self.session_with(peer).is_some() {
            return Err(format!(
                "'peer' is {peer}, and speaker '{}' has a session with it: remove that first (routes_remove)",
                self.spec.name
            ));
        }
        if spec.config.passive {
            let listener = self.listen(peer, sockets)?;
            if let Some(key) = &spec.md5 {
                let set = sockets.set_listener_key(listener, peer, key);
                set.map_err(|error| {
                    format!("'md5': the system refused a key for {peer}: {error}")
                })?;
            }
        }
        let id = self
            .bgp
            .add_session(spec.config.clone(), seed)
            .map_err(|error| error.to_string())?;
        self.connections.insert(id, Connection::new(spec));
        self.bgp.session_mut(id).start(now_ns);
        Ok(id)
    }

    /// The socket on which peers of that one's family are waited for.
    fn listen(&mut self, peer: IpAddr, sockets: &mut impl BgpSockets) -> Result<SocketKey, String> {
        let place = usize::from(peer.is_ipv6());
        if let Some(listener) = self.listeners[place] {
            return Ok(listener);
        }
        let any = match peer {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let own = self.spec.place.address_to(peer).unwrap_or(any);
        let address = SocketAddr::new(own, self.spec.tcp_port);
        let listener = sockets
            .listen(self.id, &self.spec.place, address)
            .map_err(|error| listen_problem(address, &error))?;
        self.listeners[place] = Some(listener);
        Ok(listener)
    }

    /// Removes a session; the peer is told.
    pub(super) fn remove_session(
        &mut self,
        id: BgpSessionId,
        sockets: &mut impl BgpSockets,
        now_ns: u64,
    ) {
        self.bgp.session_mut(id).stop(now_ns);
        self.drive(id, sockets, now_ns);
        let session = self.bgp.remove_session(id);
        let connection = self.connections.remove(&id);
        if let (Some(mut session), Some(mut connection)) = (session, connection) {
            connection.close(&mut session, sockets, now_ns);
            let peer = connection.peer.ip();
            let listener = self.listeners[usize::from(peer.is_ipv6())];
            if let Some(listener) = listener.filter(|_| connection.md5.is_some()) {
                // It goes with the listener at the latest.
                let _ = sockets.set_listener_key(listener, peer, "");
            }
        }
    }

    /// Removes all that it has.
    pub(super) fn end(&mut self, sockets: &mut impl BgpSockets, now_ns: u64) {
        for id in self.session_ids() {
            self.remove_session(id, sockets, now_ns);
        }
        for listener in self.listeners.into_iter().flatten() {
            sockets.close(listener);
        }
    }

    /// A peer may have connected. Gives the sessions that have a connection now.
    pub(super) fn accept(
        &mut self,
        listener: SocketKey,
        sockets: &mut impl BgpSockets,
        now_ns: u64,
    ) -> Vec<BgpSessionId> {
        let mut accepted = Vec::new();
        while let Some((key, peer)) = sockets.accept(listener) {
            let id = self.session_with(peer);
            let is_awaited = |id: &BgpSessionId| {
                let state = self.bgp.session(*id).map(|session| session.state());
                state == Some(BgpState::Active)
            };
            let Some(id) = id.filter(is_awaited) else {
                // Nobody waits for it, or there is one already.
                sockets.close(key);
                continue;
            };
            sockets.adopt(key, self.key(id));
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.link = Link::Open(key);
            }
            self.bgp.session_mut(id).handle_connected(now_ns);
            accepted.push(id);
        }
        accepted
    }

    /// The socket of a session is ready.
    pub(super) fn handle_ready(
        &mut self,
        id: BgpSessionId,
        event: SocketEvent,
        sockets: &mut impl BgpSockets,
        buffer: &mut [u8],
        now_ns: u64,
    ) {
        let key = event.key;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.link == Link::Connecting(key) {
            if !event.is_writable {
                return;
            }
            match sockets.take_error(key) {
                Ok(()) => {
                    connection.link = Link::Open(key);
                    self.bgp.session_mut(id).handle_connected(now_ns);
                }
                Err(error) => self.fail(id, "cannot connect to", &error, now_ns),
            }
        } else if connection.link == Link::Open(key) && event.is_readable {
            self.read(id, key, sockets, buffer, now_ns);
        }
        self.drive(id, sockets, now_ns);
    }

    fn read(
        &mut self,
        id: BgpSessionId,
        key: SocketKey,
        sockets: &mut impl BgpSockets,
        buffer: &mut [u8],
        now_ns: u64,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let session = self.bgp.session_mut(id);
        for _ in 0..READS_PER_TURN {
            match sockets.read(key, buffer) {
                Ok(0) => {
                    connection.note_closed();
                    session.handle_disconnected(now_ns);
                    return;
                }
                Ok(bytes) => {
                    connection.note_received(bytes);
                    session.handle_bytes(now_ns, &buffer[..bytes]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => return self.fail(id, "the connection broke to", &error, now_ns),
            }
        }
    }

    /// What is due of a session.
    pub(super) fn handle_timeout(
        &mut self,
        id: BgpSessionId,
        sockets: &mut impl BgpSockets,
        now_ns: u64,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.poll_acknowledged(sockets, now_ns);
        self.bgp.session_mut(id).handle_timeout(now_ns);
        self.drive(id, sockets, now_ns);
    }

    /// The system ended the connection of a session, or did not open it.
    fn fail(&mut self, id: BgpSessionId, what: &str, error: &io::Error, now_ns: u64) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.note_io_error(what, error);
            if let Link::Connecting(key) = connection.link {
                // It has come to its end: nothing is waited for any more.
                connection.link = Link::Open(key);
            }
        }
        self.bgp.session_mut(id).handle_disconnected(now_ns);
    }

    /// Does what a session wants done, and writes what it has to send.
    pub(super) fn drive(&mut self, id: BgpSessionId, sockets: &mut impl BgpSockets, now_ns: u64) {
        loop {
            while let Some(event) = self.bgp.poll_event(id) {
                self.handle_event(id, &event, sockets, now_ns);
            }
            let Some(connection) = self.connections.get_mut(&id) else {
                return;
            };
            match connection.write(self.bgp.session_mut(id), sockets, now_ns) {
                Ok(Written::All | Written::Waits) => break,
                Err(error) => {
                    self.fail(id, "the connection broke to", &error, now_ns);
                    let Some(connection) = self.connections.get_mut(&id) else {
                        return;
                    };
                    connection.close(self.bgp.session_mut(id), sockets, now_ns);
                }
            }
        }
        if let (Some(connection), Some(session)) = (self.connections.get(&id), self.bgp.session(id))
        {
            connection.publish(session);
        }
    }

    fn handle_event(
        &mut self,
        id: BgpSessionId,
        event: &BgpEvent,
        sockets: &mut impl BgpSockets,
        now_ns: u64,
    ) {
        let owner = self.key(id);
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match event {
            BgpEvent::Connect => {
                let dial = Dial {
                    place: &self.spec.place,
                    peer: connection.peer,
                    md5: connection.md5.as_deref(),
                };
                match sockets.connect(owner, dial) {
                    Ok(key) => connection.link = Link::Connecting(key),
                    Err(error) => self.fail(id, "cannot connect to", &error, now_ns),
                }
            }
            BgpEvent::Disconnect => {
                connection.close(self.bgp.session_mut(id), sockets, now_ns);
            }
            BgpEvent::Established(_) => {
                tracing::info!(speaker = self.spec.name, peer = %connection.peer.ip(), "BGP session established");
                connection.note_established(now_ns);
                connection.note_queued(self.bgp.session_mut(id), now_ns);
            }
            BgpEvent::Down(reason) => {
                // The session may have ended without closing its connection: the peer did.
                connection.close(self.bgp.session_mut(id), sockets, now_ns);
                connection.note_down(reason);
            }
            BgpEvent::RefreshRequested(_) => {
                connection.note_queued(self.bgp.session_mut(id), now_ns);
            }
            BgpEvent::EndOfRib(_) => {}
        }
    }

    /// Routes were queued on all sessions: they begin to leave. Gives how many sessions are established.
    pub(super) fn send_queued(&mut self, sockets: &mut impl BgpSockets, now_ns: u64) -> usize {
        let mut established = 0;
        for id in self.session_ids() {
            let session = self.bgp.session_mut(id);
            established += usize::from(session.state() == BgpState::Established);
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.note_queued(session, now_ns);
            }
            self.drive(id, sockets, now_ns);
        }
        established
    }

    /// When a session must be looked after.
    pub(super) fn poll_timeout(&self, id: BgpSessionId, now_ns: u64) -> Option<u64> {
        let session = self.bgp.session(id)?;
        self.connections.get(&id)?.poll_timeout(session, now_ns)
    }

    /// How it is.
    pub(super) fn info(&self, sockets: &impl BgpSockets, now_ns: u64) -> SpeakerInfo {
        let tables = self.bgp.tables().map(|table| AnnouncedTableInfo {
            name: table.name.to_owned(),
            family: family_of(table.family),
            routes: table.routes,
            encoded_bytes: table.encoded_bytes,
            rate: table.routes_per_s,
        });
        let sessions = self.bgp.sessions().filter_map(|(id, session)| {
            let connection = self.connections.get(&id)?;
            Some(connection.info(session, sockets, now_ns))
        });
        let namespace = self.spec.place.namespace.as_ref();
        SpeakerInfo {
            name: self.spec.name.clone(),
            asn: self.spec.asn,
            router_id: self.spec.router_id,
            hold_time_s: self.spec.hold_time_s,
            namespace: namespace.map(|namespace| namespace.name().to_owned()),
            address: self.spec.place.addresses.first().copied(),
            tables: tables.collect(),
            sessions: sessions.collect(),
            shared_bytes: self.bgp.shared_memory(),
        }
    }

    fn key(&self, session: BgpSessionId) -> SessionKey {
        SessionKey {
            speaker: self.id,
            session,
        }
    }
}

fn listen_problem(address: SocketAddr, error: &io::Error) -> String {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            "something listens there already: end it, or give the speaker another 'tcp_port'"
        }
        ErrorKind::PermissionDenied => {
            "ports below 1024 are root's: start the server as root, or give the speaker another 'tcp_port'"
        }
        ErrorKind::AddrNotAvailable => {
            "the address is not here: give the speaker one that its namespace has"
        }
        _ => "give the speaker another 'address' or 'tcp_port'",
    };
    format!("peers cannot be waited for on {address} ({error}): {remedy}")
}
