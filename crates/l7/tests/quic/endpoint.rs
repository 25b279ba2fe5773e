//! QUIC of quinn as an application: an endpoint for each core, which tells its connections apart by
//! their ids. Clients send a text over a stream, and servers send back what they receive.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use allosaur_engine::app::{
    AppCore, AppFlow, AppFlowInfo, ApplicationContext, ApplicationFactory, CoreInfo, Datagram,
    DatagramBatch, DatagramRoute, Demultiplexer, EcnCodepoint, FlowEvent, FlowId, Output,
    VariablePool,
};
use allosaur_engine::time::Nanos;
use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Dir, Endpoint, EndpointConfig, EndpointEvent, Event, Incoming, InvalidCid, ServerConfig,
    StreamEvent, StreamId, VarInt,
};
use ring::digest::{Context, SHA256};

/// Bytes of the connection ids that a core gives; the first says which core.
pub(crate) const ID_BYTES: usize = 8;
/// Datagrams in a batch at most.
const BATCH_MAX: usize = 10;
/// The name of the server, which its certificate has.
pub(crate) const NAME: &str = "server.example.org";

/// What the connections of one side saw.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The hashes of what each sent and received, once all of it had come.
    pub(crate) hashes: Vec<[Vec<u8>; 2]>,
    /// Datagrams that arrived, by their bits of ECN.
    pub(crate) ecn: [u64; 4],
    /// Marks that senders were told of.
    pub(crate) congestion_events: u64,
    /// Packets that senders took for lost.
    pub(crate) lost: u64,
    /// The most datagrams that one poll gave.
    pub(crate) batch_max: usize,
    /// The ports of clients, when they were first and when they were last heard of.
    pub(crate) ports: Vec<[u16; 2]>,
    /// Connections that were told to go away before there was a flow of theirs.
    pub(crate) discarded: u32,
}

/// One side of a template that speaks QUIC.
pub(crate) struct Quic {
    pub(crate) client: Option<ClientConfig>,
    pub(crate) server: Option<Arc<ServerConfig>>,
    /// What clients send.
    pub(crate) text: Arc<Vec<u8>>,
    /// Clients must show first that they are where they say (RFC 9000, section 8.1.2).
    pub(crate) retries: bool,
    pub(crate) tally: Arc<Mutex<Tally>>,
}

impl fmt::Debug for Quic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quic").finish_non_exhaustive()
    }
}

impl ApplicationFactory for Quic {
    fn core(&self, core: &CoreInfo) -> Box<dyn AppCore> {
        let mut config = EndpointConfig::default();
        let (rank, given) = (core.rank as u8, core.seed);
        config.cid_generator(move || Box::new(CoreIds { rank, given }));
        let server = self.server.clone();
        let seed = [core.seed as u8; 32];
        Box::new(QuicCore {
            endpoint: Endpoint::new(Arc::new(config), server, true, Some(seed)),
            client: self.client.clone(),
            text: Arc::clone(&self.text),
            retries: self.retries,
            tally: Arc::clone(&self.tally),
            began: Instant::now(),
            flows: Vec::new(),
            by_handle: HashMap::new(),
            incoming: None,
        })
    }
}

/// Ids of connections that carry the core: a load balancer that knows the place of this byte finds it.
struct CoreIds {
    rank: u8,
    given: u64,
}

impl ConnectionIdGenerator for CoreIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.given = self.given.wrapping_add(1);
        let mut id = self.given.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        id[0] = self.rank;
        ConnectionId::new(&id)
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        if id.first() == Some(&self.rank) {
            Ok(())
        } else {
            Err(InvalidCid)
        }
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

struct QuicCore {
    endpoint: Endpoint,
    client: Option<ClientConfig>,
    text: Arc<Vec<u8>>,
    retries: bool,
    tally: Arc<Mutex<Tally>>,
    /// The engine's time 0.
    began: Instant,
    flows: Vec<Option<QuicFlow>>,
    by_handle: HashMap<ConnectionHandle, u32>,
    /// The connection that the last datagram began.
    incoming: Option<Incoming>,
}

impl fmt::Debug for QuicCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicCore").finish_non_exhaustive()
    }
}

impl QuicCore {
    fn instant(&self, now: Nanos) -> Instant {
        self.began + Duration::from_nanos(now)
    }

    fn at(&mut self, flow: AppFlow) -> &mut QuicFlow {
        let it = self.flows[flow.0 as usize].as_mut();
        it.expect("a flow is called until it is released")
    }

    /// Makes the connection of a flow: what the last datagram began, or one of a client.
    fn connection(
        &mut self,
        now: Instant,
        flow: &AppFlowInfo,
    ) -> Option<(ConnectionHandle, Connection)> {
        if flow.is_client {
            let config = self.client.clone()?;
            let made = self.endpoint.connect(now, config, flow.remote, NAME);
            return made.ok();
        }
        let incoming = self.incoming.take()?;
        let accepted = self.endpoint.accept(incoming, now, &mut Vec::new(), None);
        accepted.ok()
    }
}

impl AppCore for QuicCore {
    fn start(&mut self, cx: &mut ApplicationContext<'_>, flow: &AppFlowInfo) -> AppFlow {
        let now = self.instant(cx.now);
        let made = self.connection(now, flow);
        let (handle, connection) = made.expect("the configuration is right");
        let number = self.flows.len() as u32;
        self.by_handle.insert(handle, number);
        self.flows.push(Some(QuicFlow {
            id: flow.id,
            handle,
            connection,
            stream: Stream::new(&self.text, flow.is_client),
            first_port: flow.remote.port(),
            has_said_keepalive: false,
            due: None,
        }));
        AppFlow(number)
    }

    fn handle_event(&mut self, _: AppFlow, _: &mut ApplicationContext<'_>, _: FlowEvent) {}

    fn handle_data(&mut self, _: AppFlow, _: &mut ApplicationContext<'_>, _: &[u8]) -> usize {
        unreachable!("its datagrams go to the demultiplexer")
    }

    fn handle_timeout(&mut self, flow: AppFlow, cx: &mut ApplicationContext<'_>) {
        let now = self.instant(cx.now);
        self.at(flow).connection.handle_timeout(now);
    }

    fn poll_output(
        &mut self,
        flow: AppFlow,
        cx: &mut ApplicationContext<'_>,
        _room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        let (now, began) = (self.instant(cx.now), self.began);
        let it = self.flows[flow.0 as usize].as_mut();
        let it = it.expect("a flow is called until it is released");
        let mut tally = self.tally.lock().expect("no panic");
        if !std::mem::replace(&mut it.has_said_keepalive, true) {
            return Some(Output::Keepalive(60_000));
        }
        it.work(now, &mut self.endpoint, &mut tally);
        let output = it.say(now, out, &mut tally);
        let due = it.connection.poll_timeout();
        it.due = due.map(|due| due.saturating_duration_since(began).as_nanos() as Nanos);
        output
    }

    fn poll_timeout(&self, flow: AppFlow) -> Option<Nanos> {
        self.flows[flow.0 as usize].as_ref()?.due
    }

    fn demultiplexer(&mut self) -> Option<&mut dyn Demultiplexer> {
        Some(self)
    }

    fn release(&mut self, flow: AppFlow, _: &mut VariablePool) {
        if let Some(it) = self.flows[flow.0 as usize].take() {
            self.by_handle.remove(&it.handle);
            if !it.connection.is_drained() {
                let gone = EndpointEvent::drained();
                self.endpoint.handle_event(it.handle, gone);
            }
        }
    }
}

impl Demultiplexer for QuicCore {
    fn handle_datagram(
        &mut self,
        cx: &mut ApplicationContext<'_>,
        datagram: &Datagram<'_>,
        out: &mut Vec<u8>,
    ) -> DatagramRoute {
        let now = self.instant(cx.now);
        let place = datagram.ecn.map_or(0, |ecn| ecn as usize);
        self.tally.lock().expect("no panic").ecn[place] += 1;
        let ecn = datagram
            .ecn
            .and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
        let (local, data) = (datagram.local.ip(), BytesMut::from(datagram.data));
        let handled = self
            .endpoint
            .handle(now, datagram.remote, Some(local), ecn, data, out);
        match handled {
            None => DatagramRoute::Unknown,
            Some(DatagramEvent::Response(_)) => DatagramRoute::Reply,
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.retries && !incoming.remote_address_validated() {
                    let told = self.endpoint.retry(incoming, out);
                    let _ = told.expect("it may be told once");
                    return DatagramRoute::Reply;
                }
                self.incoming = Some(incoming);
                DatagramRoute::Start
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let flow = self.at(AppFlow(self.by_handle[&handle]));
                flow.connection.handle_event(event);
                DatagramRoute::Flow(flow.id)
            }
        }
    }

    fn discard(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            self.tally.lock().expect("no panic").discarded += 1;
            self.endpoint.ignore(incoming);
        }
    }
}

/// A connection.
struct QuicFlow {
    id: FlowId,
    handle: ConnectionHandle,
    connection: Connection,
    stream: Stream,
    first_port: u16,
    has_said_keepalive: bool,
    due: Option<Nanos>,
}

impl QuicFlow {
    /// Does what there is to do.
    fn work(&mut self, now: Instant, endpoint: &mut Endpoint, tally: &mut Tally) {
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected if self.stream.is_client => {
                    self.stream.id = self.connection.streams().open(Dir::Bi);
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    self.stream.id = self.connection.streams().accept(Dir::Bi);
                }
                _ => {}
            }
        }
        if self.stream.carry(&mut self.connection) {
            self.note_done(tally);
            if self.stream.is_client {
                let reason = bytes::Bytes::new();
                self.connection.close(now, VarInt::from_u32(0), reason);
            }
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(answer) = endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(answer);
            }
        }
    }

    fn note_done(&mut self, tally: &mut Tally) {
        let hashes = [&self.stream.sent, &self.stream.received];
        let hashes = hashes.map(|hash| hash.clone().finish().as_ref().to_vec());
        tally.hashes.push(hashes);
        let port = self.connection.remote_address().port();
        tally.ports.push([self.first_port, port]);
        let path = self.connection.stats().path;
        tally.congestion_events += path.congestion_events;
        tally.lost += path.lost_packets;
    }

    fn say(&mut self, now: Instant, out: &mut Vec<u8>, tally: &mut Tally) -> Option<Output> {
        if let Some(batch) = self.connection.poll_transmit(now, BATCH_MAX, out) {
            let segment_bytes = batch.segment_size.unwrap_or(batch.size);
            tally.batch_max = tally.batch_max.max(batch.size.div_ceil(segment_bytes));
            return Some(Output::Datagrams(DatagramBatch {
                segment_bytes,
                remote: Some(batch.destination),
                ecn: batch.ecn.and_then(|ecn| EcnCodepoint::of(ecn as u8)),
            }));
        }
        let is_over = self.connection.is_drained();
        is_over.then_some(match self.stream.is_done {
            true => Output::Close,
            false => Output::Fail,
        })
    }
}

/// The only stream of a connection: what is sent and received on it.
struct Stream {
    is_client: bool,
    id: Option<StreamId>,
    /// What is to be sent, and how much of it was.
    text: Vec<u8>,
    written: usize,
    is_finished: bool,
    has_all: bool,
    is_done: bool,
    sent: Context,
    received: Context,
}

impl Stream {
    fn new(text: &Arc<Vec<u8>>, is_client: bool) -> Stream {
        Stream {
            is_client,
            id: None,
            text: match is_client {
                true => text.to_vec(),
                false => Vec::new(),
            },
            written: 0,
            is_finished: false,
            has_all: false,
            is_done: false,
            sent: Context::new(&SHA256),
            received: Context::new(&SHA256),
        }
    }

    /// Reads and writes what can be. Returns whether all is said and heard, once.
    fn carry(&mut self, connection: &mut Connection) -> bool {
        let Some(id) = self.id else {
            return false;
        };
        self.read(connection, id);
        let mut sender = connection.send_stream(id);
        while self.written < self.text.len() {
            let Ok(bytes) = sender.write(&self.text[self.written..]) else {
                break;
            };
            self.sent.update(&self.text[self.written..][..bytes]);
            self.written += bytes;
        }
        let is_written = self.written == self.text.len() && (self.is_client || self.has_all);
        if is_written && !std::mem::replace(&mut self.is_finished, true) {
            sender.finish().expect("nobody stopped it");
        }
        let is_done = self.has_all && self.is_finished;
        is_done && !std::mem::replace(&mut self.is_done, true)
    }

    fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    self.received.update(&chunk.bytes);
                    if !self.is_client {
                        self.text.extend_from_slice(&chunk.bytes);
                    }
                }
                Ok(None) => {
                    self.has_all = true;
                    break;
                }
                Err(_) => break,
            }
        }
        let _ = chunks.finalize();
    }
}
