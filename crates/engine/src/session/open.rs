//! Flows that begin: asked for by us, by a SYN, or by a first datagram.

use super::app_latency::{Header, Stamp};
use super::application::FlowApplication;
use super::begin_time::BeginTime;
use super::context::FlowContext;
use super::flow::{FlowTransport, Session, SessionFlag, SessionFlags};
use super::links::{LinkAddresses, LinkIndex, segment_bytes_max};
use super::outbox::Outbox;
use super::udp::Udp;
use crate::app::{Addon, FlowEvent, Transport};
use crate::flow::{FlowKey, Protocol};
use crate::tcp::{Connection, Segment, Seq};
use crate::time::Tight;

impl Session {
    /// A flow that asks for its other end. `first` is the number of its SYN.
    pub fn connect(
        cx: &mut FlowContext<'_>,
        key: FlowKey,
        link: LinkAddresses,
        first: Seq,
    ) -> Session {
        let transport = match key.scope.protocol() {
            Protocol::Tcp => FlowTransport::Tcp(Connection::connect(&mut cx.tcp(), first)),
            Protocol::Udp => {
                cx.counters.udp.connects += 1;
                let stamp = cx
                    .program
                    .addon()
                    .map(|Addon::Latency| Stamp::client(cx.pools.connections.draw()));
                FlowTransport::Udp(Udp::new(cx.now, stamp))
            }
        };
        let link = cx.pools.links.hold(link, key.scope.is_v6());
        Session::new(cx, key, link, transport, true)
    }

    /// A flow that another end asked for with `syn`.
    pub fn accept(
        cx: &mut FlowContext<'_>,
        key: FlowKey,
        link: LinkAddresses,
        first: Seq,
        syn: &Segment,
    ) -> Session {
        let link = cx.pools.links.hold(link, key.scope.is_v6());
        let prefix = cx.pools.links.at(link);
        let most = segment_bytes_max(&key, prefix, cx.headers.frame_bytes_max);
        let syn = syn.received_within(most);
        let connection = Connection::accept(&mut cx.tcp(), first, &syn);
        Session::new(cx, key, link, FlowTransport::Tcp(connection), false)
    }

    /// A flow that another end began with a datagram.
    pub fn accept_datagram(cx: &mut FlowContext<'_>, key: FlowKey, link: LinkAddresses) -> Session {
        cx.counters.udp.accepts += 1;
        let stamp = cx.program.addon();
        let stamp = stamp.map(|Addon::Latency| Stamp::Server(Header::default()));
        let transport = FlowTransport::Udp(Udp::new(cx.now, stamp));
        let link = cx.pools.links.hold(link, key.scope.is_v6());
        Session::new(cx, key, link, transport, false)
    }

    fn new(
        cx: &mut FlowContext<'_>,
        key: FlowKey,
        link: LinkIndex,
        transport: FlowTransport,
        is_client: bool,
    ) -> Session {
        let is_datagram = matches!(transport, FlowTransport::Udp(_));
        debug_assert_eq!(is_datagram, cx.program.transport() == Transport::Datagram);
        let application = cx.start_application(&key, is_client);
        let mut session = Session {
            key,
            transport,
            application,
            outbox: Outbox::default(),
            wake_at: Tight::MAX,
            link,
            identification: cx.pools.rng.next15() as u16,
            flags: SessionFlags::default(),
            begin_time: BeginTime::at(cx.now),
        };
        if is_client {
            session.flags.set(SessionFlag::Client);
        }
        if is_datagram {
            session.flags.set(SessionFlag::Connected);
            session.tell_connected(cx);
        }
        session
    }

    fn tell_connected(&mut self, cx: &mut FlowContext<'_>) {
        match &mut self.application {
            FlowApplication::Program(program) => program.handle_connected(),
            FlowApplication::Bytes(index) => {
                let index = *index;
                cx.with_bytes(index, |cx, it| it.tell(cx, FlowEvent::Connected));
            }
        }
    }

    /// Whether the peer is there: it answered what we sent, or at least said more than its
    /// first.
    pub fn is_proven(&self) -> bool {
        match &self.transport {
            FlowTransport::Tcp(_) => self.flags.has(SessionFlag::Connected),
            FlowTransport::Udp(udp) => udp.has_heard_again(),
        }
    }

    /// Runs another program from its beginning, before the first was told of any data.
    pub fn run_instead(&mut self, cx: &mut FlowContext<'_>) {
        self.release_application(cx.pools);
        self.application = cx.start_application(&self.key, self.is_client());
        self.wake_at = Tight::MAX;
        if self.flags.has(SessionFlag::Connected) {
            self.tell_connected(cx);
        }
    }
}
