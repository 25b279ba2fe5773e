//! Emulated clients on data threads, from a port through the receive thread and back, driven by hand.

use std::sync::Arc;

use allosaur_emulation::Settings;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_emulation::shards::{NamespaceReader, ShardMap, ShardedCall};
use allosaur_engine::time::SECOND;
use allosaur_port::kind::PortTx;
use allosaur_port::memory::{self, LinkSettings, MemoryRx, RingTx};
use allosaur_port::tap::{TapSwitch, tap};
use allosaur_port::{RxQueue, TxQueue};
use allosaur_server::control::QuestionId;
use allosaur_server::counters::{Counters, Snapshot};
use allosaur_server::emulation::{EmulatedClients, EmulationAnswer, EmulationRequest};
use allosaur_server::threads::client_frames::{
    ClientFrames, ClientLink, InhabitedPorts, placements,
};
use allosaur_server::threads::clock::{Clock, Hand};
use allosaur_server::threads::data::{
    ClientLinks, DataThread, EmulationState, Report, WorkerCommand,
};
use allosaur_server::threads::mailbox::{ControlEnd, mailbox};
use allosaur_server::threads::receive::Receiver;
use allosaur_server::threads::receive::watch::Watch;
use allosaur_server::threads::request_channel::{RequestSender, request_channel};
use allosaur_server::threads::shard_links::shard_links;
use allosaur_server::threads::waker::{Notify, Waker};
use serde_json::{Value, json};

type ClientSender = RequestSender<EmulationRequest, EmulationAnswer>;

/// A port with emulated clients on so many data threads, and its peer.
struct World {
    hand: Hand,
    receiver: Receiver,
    threads: Vec<DataThread>,
    counters: Counters,
    requests: Vec<ClientSender>,
    map: Arc<ShardMap>,
    peer_tx: RingTx,
    peer_rx: MemoryRx,
    _mail: Vec<ControlEnd<WorkerCommand, Report>>,
}

fn waker() -> Waker {
    Waker::new().expect("a file descriptor")
}

fn notify() -> Notify {
    Notify::new().expect("a file descriptor")
}

impl World {
    fn new(cores: usize) -> World {
        let (clock, hand) = Clock::by_hand();
        let (mut port, mut peer) = memory::pair(cores + 1, 1, &LinkSettings::default());
        let counters = Counters::new(1, cores);
        let map = Arc::new(ShardMap::new(vec![(0..cores).collect()], cores));
        let inhabited = InhabitedPorts::new(cores);
        let own: PortTx = port.tx.pop().expect("one for the receive thread").into();
        let (mut threads, mut requests, mut links) = (Vec::new(), Vec::new(), Vec::new());
        let (mut taps, mut all_mail) = (Vec::new(), Vec::new());
        let switch = TapSwitch::default();
        let wakers: Vec<_> = (0..cores).map(|_| waker()).collect();
        let shard_links = shard_links(&wakers);
        let parts = port.tx.into_iter().zip(wakers).zip(shard_links);
        for (core, ((queue, waker), shards)) in parts.enumerate() {
            let (control, mail) = mailbox(&notify(), &waker);
            let (sender, receiver) = request_channel(waker.clone(), notify());
            let ((frames_in, frames), (tap_in, tap_out)) = (tap(), tap());
            let (placements_in, placements_out) = placements(waker.clone());
            let settings = Settings {
                shard: core as u32,
                shards: Some(Arc::clone(&map)),
                ..Settings::default()
            };
            let clients = EmulatedClients::new(settings, 1, clock.now_ns());
            let client_links = ClientLinks {
                frames,
                requests: vec![receiver],
                inhabited: inhabited.of(core),
                placements: placements_in,
                shards,
            };
            let state = EmulationState::new(clients, client_links, 1);
            let block = counters.cores[core].clone();
            let thread = DataThread::new(vec![Some(queue.into())], mail, block, clock.clone());
            let thread = thread.tapped_by(tap_in, switch.clone());
            threads.push(thread.with_clients(Box::new(state)));
            taps.push(tap_out);
            requests.push(sender);
            all_mail.push(control);
            links.push(ClientLink {
                frames: frames_in,
                placements: placements_out,
                wake: Box::new(move || waker.wake()),
            });
        }
        let (_, answering) = crate::asking::asking(waker());
        let frames = ClientFrames::new(Arc::clone(&map), links, inhabited);
        let watch = Watch::new(vec![own], taps, switch, answering).tapped_by(Box::new(frames));
        let receiver = Receiver::new([Some(port.rx.into())], counters.receive.clone(), clock);
        World {
            hand,
            receiver: receiver.watched_by(watch),
            threads,
            counters,
            requests,
            map,
            peer_tx: peer.tx.remove(0),
            peer_rx: peer.rx,
            _mail: all_mail,
        }
    }

    /// Has a data thread do a call.
    fn ask(&mut self, core: usize, method: &str, mut params: Value) -> Value {
        let hello = json!({"name": "EMU", "major": 1, "minor": 1});
        params["api_h"] = self.call(core, "api_sync_v2", hello)["api_h"].take();
        self.call(core, method, params)
    }

    fn call(&mut self, core: usize, method: &str, params: Value) -> Value {
        self.request(core, RpcCall::new(method, params))
    }

    fn request(&mut self, core: usize, call: RpcCall) -> Value {
        let request = EmulationRequest::Call {
            call,
            number: 0,
            usage: None,
        };
        self.requests[core].send(QuestionId(1), request);
        // It waits for the timers that are due.
        let answer = (0..1000).find_map(|_| {
            self.threads[core].turn();
            self.requests[core].receive()
        });
        match answer {
            Some((_, EmulationAnswer::Called(Ok(reply)))) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Adds ten clients with ARP to a VLAN, on the thread that has it.
    fn add(&mut self, vlan: u16) {
        let tunnel = json!({"vport": 0, "tci": [vlan, 0]});
        let core = self.map.home_of_frame(0, &arp_request(vlan, 0));
        self.ask(core, "ctx_add", json!({"tunnels": [tunnel]}));
        let client = |number: u8| json!({"mac": [2, 0, 0, 0, vlan as u8, number], "ipv4": [10, 0, 0, number], "plugs": {"arp": {}}});
        let clients: Vec<Value> = (0..10).map(client).collect();
        self.ask(
            core,
            "ctx_client_add",
            json!({"tun": tunnel, "clients": clients}),
        );
    }

    /// Has all data threads do what is theirs of a call.
    fn ask_all(&mut self, method: &str, params: Value) -> Value {
        let mut reader = NamespaceReader::default();
        let call = RpcCall::new(method, params).admitted();
        let mut call = ShardedCall::new(&self.map, &reader, call);
        loop {
            let (core, call_part) = call.poll_part(32).expect("it is not over");
            let reply = self.request(core, call_part);
            if let Some(reply) = call.handle_reply(Ok(reply), &mut reader) {
                return reply.expect("it can be done");
            }
        }
    }

    /// Turns all threads until there is nothing to do; what the peer got.
    fn turn(&mut self) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        loop {
            let received = self.receiver.turn();
            let done: u64 = self.threads.iter_mut().map(DataThread::turn).sum();
            self.peer_rx
                .receive(u64::MAX, usize::MAX, |_, frame| got.push(frame.to_vec()));
            if received == 0 && done == 0 {
                return got;
            }
        }
    }

    fn send(&mut self, frame: &[u8]) {
        let slot = self.peer_tx.slot(0, frame.len()).expect("there is room");
        slot.copy_from_slice(frame);
        self.peer_tx.flush();
    }

    /// Frames that the clients of a thread got and sent.
    fn frames_of(&mut self, core: usize) -> [u64; 2] {
        let counted = self.ask(core, "ctx_cnt", json!({"mask": ["veth"], "zero": true}));
        ["RxPkts", "TxPkts"].map(|name| counted["veth"][name].as_u64().expect("a number"))
    }

    fn snapshot(&mut self) -> Snapshot {
        self.threads.iter_mut().for_each(DataThread::publish);
        let mut snapshot = Snapshot::default();
        self.counters.read(&mut snapshot);
        snapshot
    }
}

/// Asks for the MAC address of 10.0.0.`last` in a VLAN.
fn arp_request(vlan: u16, last: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 9, 9, 9, 0x81, 0]);
    frame.extend(vlan.to_be_bytes());
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 9, 9, 9, 10, 0, 0, 99]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, last]);
    frame.resize(64, 0);
    frame
}

#[test]
fn two_data_threads_answer_half_of_the_arp_requests_each() {
    for cores in [1, 2] {
        let mut world = World::new(cores);
        (1..=8).for_each(|vlan| world.add(vlan));
        world.turn();
        let mut answers = 0;
        for round in 0..50 {
            for vlan in 1..=8 {
                world.send(&arp_request(vlan, round % 10));
            }
            world.hand.advance(1000);
            answers += world.turn().len();
        }
        assert_eq!(answers, 400, "{cores} threads");
        for core in 0..cores {
            assert_eq!(world.frames_of(core), [400 / cores as u64; 2]);
        }
        let snapshot = world.snapshot();
        assert_eq!(snapshot.ports[0].transmit.sent.packets, 400);
        assert_eq!(snapshot.ports[0].receive.packets, 400);
    }
}

#[test]
fn a_port_that_takes_nothing_holds_up_nobody() {
    let mut world = World::new(1);
    world.add(7);
    world.turn();
    // Nobody reads what the clients send, until the ring of the peer is full.
    let mut rounds = 0;
    let missed = loop {
        for _ in 0..200 {
            world.send(&arp_request(7, 3));
        }
        while world.receiver.turn() > 0 || world.threads[0].turn() > 0 {}
        let transmit = world.snapshot().ports[0].transmit;
        if transmit.missed_packets > 0 {
            break transmit;
        }
        rounds += 1;
        assert!(rounds < 10_000, "the ring is never full");
    };
    assert_eq!(missed.missed_packets, missed.queue_full);
    assert_eq!(
        missed.sent.packets + missed.missed_packets,
        200 * (rounds + 1)
    );
}

#[test]
fn what_a_client_is_told_to_send_leaves_by_its_port() {
    let mut world = World::new(1);
    world.add(7);
    assert_eq!(world.turn().len(), 0, "they have no gateway to ask for");
    let tunnel = json!({"vport": 0, "tci": [7, 0]});
    let params = json!({"tun": tunnel, "mac": [2, 0, 0, 0, 7, 3], "garp": true});
    world.ask(0, "arp_c_cmd_query", params);
    let sent = world.turn();
    assert_eq!(sent.len(), 1);
    assert_eq!(
        sent[0][..12],
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 7, 3]
    );
}

/// Clients of one namespace, whose MAC addresses lie apart, and the gateway that they seek.
const FLAT_CLIENTS: u8 = 60;
const GATEWAY: [u8; 6] = [2, 0, 0, 9, 9, 9];

fn flat_mac(number: u8) -> [u8; 6] {
    [2, 0, 0, number, 0, 0]
}

fn add_flat(world: &mut World) {
    let tunnel = json!({"vport": 0, "tci": [7, 0]});
    world.ask_all("ctx_add", json!({"tunnels": [tunnel]}));
    let client = |number: u8| json!({"mac": flat_mac(number), "ipv4": [10, 0, 0, number], "ipv4_dg": [10, 0, 0, 99], "plugs": {"arp": {"timer_disable": true}}});
    let clients: Vec<Value> = (100..100 + FLAT_CLIENTS).map(client).collect();
    world.ask_all("ctx_client_add", json!({"tun": tunnel, "clients": clients}));
}

/// What the gateway answers to a client.
fn arp_reply(client: u8) -> Vec<u8> {
    let mut frame = flat_mac(client).to_vec();
    frame.extend(GATEWAY);
    frame.extend([0x81, 0, 0, 7, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    frame.extend(GATEWAY);
    frame.extend([10, 0, 0, 99]);
    frame.extend(flat_mac(client));
    frame.extend([10, 0, 0, client]);
    frame.resize(64, 0);
    frame
}

#[test]
fn threads_share_the_clients_of_a_namespace_and_ask_for_their_gateway_once() {
    for cores in [1, 2, 3] {
        let mut world = World::new(cores);
        add_flat(&mut world);
        assert_eq!(world.turn().len(), 2 * usize::from(FLAT_CLIENTS));
        // Nobody answers.
        for _ in 0..3 {
            world.hand.advance(SECOND);
            assert_eq!(world.turn().len(), 1, "{cores} threads");
        }
        let macs: Vec<_> = (100..100 + FLAT_CLIENTS).map(flat_mac).collect();
        let params = json!({"tun": {"vport": 0, "tci": [7, 0]}, "macs": macs});
        world.send(&arp_reply(117));
        world.turn();
        let infos = world.ask_all("ctx_client_get_info", params);
        for info in infos.as_array().expect("a list") {
            assert_eq!(info["dgw"]["rmac"], json!(GATEWAY), "{cores} threads");
        }
        world.hand.advance(100 * SECOND);
        assert_eq!(world.turn().len(), 0, "it is known");
        // Each thread answers for its own clients.
        for core in 0..cores {
            world.frames_of(core);
        }
        for number in 100..100 + FLAT_CLIENTS {
            world.send(&arp_request(7, number));
        }
        assert_eq!(world.turn().len(), usize::from(FLAT_CLIENTS));
        let answers: Vec<_> = (0..cores).map(|core| world.frames_of(core)).collect();
        let least = u64::from(FLAT_CLIENTS) / cores as u64 / 2;
        assert!(
            answers.iter().all(|[_, sent]| *sent >= least),
            "{answers:?}"
        );
    }
}

#[test]
fn a_thread_that_stands_still_is_told_of_all_neighbors_later() {
    const GATEWAYS: u16 = 600;
    let mut world = World::new(2);
    let tunnel = json!({"vport": 0, "tci": [7, 0]});
    let home = world.map.home_of_frame(0, &arp_request(7, 0));
    world.ask(home, "ctx_add", json!({"tunnels": [tunnel]}));
    let client = |number: u16| {
        let [high, low] = number.to_be_bytes();
        json!({"mac": [2, 0, 0, 7, high, low], "ipv4": [10, 0, high, low], "ipv4_dg": [10, 1, high, low], "plugs": {"arp": {"timer_disable": true}}})
    };
    let clients: Vec<Value> = (0..GATEWAYS).map(client).collect();
    // The home takes no turn meanwhile, and there is no room for what it is told.
    let params = json!({"tun": tunnel, "clients": clients});
    world.ask(1 - home, "ctx_client_add", params);
    assert_eq!(world.turn().len(), 2 * usize::from(GATEWAYS));
    let params = json!({"tun": tunnel, "mask": ["arp"]});
    let counters = world.ask(home, "arp_ns_cnt", params);
    assert_eq!(counters["arp"]["addIncomplete"], GATEWAYS);
    world.hand.advance(SECOND);
    assert_eq!(world.turn().len(), usize::from(GATEWAYS), "asked for again");
}

#[test]
fn a_request_sees_the_timers_that_were_due_when_it_came() {
    const MANY: u16 = 300;
    let mut world = World::new(1);
    let tunnel = json!({"vport": 0, "tci": [7, 0]});
    world.ask(0, "ctx_add", json!({"tunnels": [tunnel]}));
    let client = |number: u16| {
        let [high, low] = number.to_be_bytes();
        json!({"mac": [2, 0, 0, 7, high, low], "ipv4": [10, 0, high, low], "ipv4_dg": [10, 1, 0, 1], "plugs": {"arp": {}}})
    };
    let clients: Vec<Value> = (0..MANY).map(client).collect();
    let params = json!({"tun": tunnel, "clients": clients});
    world.ask(0, "ctx_client_add", params);
    world.turn();
    let mut asked = || {
        let params = json!({"tun": tunnel, "mask": ["arp"]});
        let counters = world.ask(0, "arp_ns_cnt", params);
        world.hand.advance(61 * SECOND);
        counters["arp"]["pktTxArpQuery"].as_u64().expect("a number")
    };
    // Each asks for its gateway once a minute, and no thread takes a turn between the clock and the request.
    let first = asked();
    assert!(asked() >= first + u64::from(MANY));
}
