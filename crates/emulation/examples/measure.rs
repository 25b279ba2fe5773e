//! What emulated clients cost on this machine, as JSON: clients added a second by requests, memory of
//! each, ARP and echo answers a second, DHCP leases a second, and the share of a core that they take
//! while nobody asks them anything. `measure CLIENTS [PLUGIN...]`; with `no-lease` among the plugins no server
//! answers who asks for a lease. Run it with `--release`. Times are
//! those that the thread ran, so that neighbours on the CPU do not count.

use std::net::Ipv4Addr;

use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::rng::Lcg;
use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv4::{DhcpHeader, HEADER_BYTES, MessageType, REPLY, code};
use allosaur_packet::network::checksum::checksum;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4Header;
use allosaur_packet::transport::udp::UdpHeader;
use serde_json::{Map, Value, json};

const SECOND: u64 = 1_000_000_000;

/// Bytes of memory that the process has.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux says what a process has");
    let pages = text
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    4096 * pages.expect("the second number is the resident set")
}

/// The time that this thread ran so far, in seconds.
fn ran_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat");
    let text = text.expect("Linux says how long a thread ran");
    let ran_ns = text.split_whitespace().next();
    let ran_ns: Option<f64> = ran_ns.and_then(|ran_ns| ran_ns.parse().ok());
    ran_ns.expect("the first number is nanoseconds") / 1e9
}

/// Clients of a request, as TRex's client sends them.
const CHUNK: u32 = 255;
/// Time that passes for a measurement of idle clients, after as much to settle.
const IDLE_S: u64 = 60;
/// The server of leases, and its MAC address.
const SERVER: Ipv4Addr = Ipv4Addr::new(16, 255, 0, 1);
const SERVER_MAC: [u8; 6] = [2, 0, 0xff, 0, 0, 1];
/// Where a frame of a client has its transaction id, its MAC address and the type of its message.
const XID: std::ops::Range<usize> = 46..50;
const CHADDR: std::ops::Range<usize> = 70..76;
/// Frames that are answered for a measurement; how many are made before some are answered, and how
/// many of these are given to the emulation before their answers are taken.
const FRAMES: usize = 2_000_000;
const BURST: usize = 10_000;
const FRAMES_AT_ONCE: usize = 64;

fn address(number: u32) -> [u8; 4] {
    (0x1000_0001 + number).to_be_bytes()
}

fn mac(number: u32) -> [u8; 6] {
    let [_, b, c, d] = number.to_be_bytes();
    [2, 0, 0, b, c, d]
}

/// What the emulation says that a client takes, in bytes.
fn own_account(emulation: &mut Emulation) -> Value {
    let reply = emulation.handle_request(0, "ctx_resource_monitor_get", &json!({}));
    reply.expect("counters")["memory"]["bytesPerClient"].take()
}

/// The texts of the requests that add clients.
fn requests(clients: u32, plugins: &Map<String, Value>) -> Vec<String> {
    let client = |number: u32| {
        let mut ipv6 = [0; 16];
        ipv6[..2].copy_from_slice(&[0x20, 0x01]);
        ipv6[12..].copy_from_slice(&number.to_be_bytes());
        json!({
            "mac": mac(number), "ipv4": address(number), "ipv4_dg": [16, 255, 0, 1],
            "ipv6": ipv6, "plugs": plugins,
        })
    };
    let starts = (0..clients).step_by(CHUNK as usize);
    let request = |first: u32| {
        let list: Vec<Value> = (first..(first + CHUNK).min(clients)).map(client).collect();
        let params = json!({"tun": {"vport": 0}, "clients": list});
        json!({"jsonrpc": "2.0", "id": 1, "method": "ctx_client_add", "params": params}).to_string()
    };
    starts.map(request).collect()
}

fn arp_request(number: u32) -> Vec<u8> {
    let mut frame = [[0xff; 6], [2, 0, 0xff, 0, 0, 1]].concat();
    frame.extend([
        8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0xff, 0, 0, 1, 16, 255, 0, 1,
    ]);
    frame.extend([0; 6]);
    frame.extend(address(number));
    frame.resize(60, 0);
    frame
}

fn echo_request(number: u32) -> Vec<u8> {
    let mut packet = [0x45, 0, 0, 44, 0, 1, 0, 0, 64, 1, 0, 0, 16, 255, 0, 1].to_vec();
    packet.extend(address(number));
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut message = [8, 0, 0, 0, 0, 7, 0, 9].to_vec();
    message.extend([0x5a; 16]);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [mac(number), [2, 0, 0xff, 0, 0, 1]].concat();
    frame.extend([8, 0]);
    frame.extend(packet);
    frame.extend(message);
    frame.resize(60, 0);
    frame
}

/// Answers a second to requests for all clients: in the order of their addresses, or in a random one.
fn answers_per_second(
    emulation: &mut Emulation,
    clients: u32,
    is_random: bool,
    request: impl Fn(u32) -> Vec<u8>,
) -> f64 {
    let (mut answers, mut ran) = (0_usize, 0.0);
    let (mut rng, mut next) = (Lcg::new(1), 0);
    for _ in 0..FRAMES / BURST {
        let frames: Vec<Vec<u8>> = (0..BURST)
            .map(|_| {
                next = if is_random {
                    rng.next31() % clients
                } else {
                    (next + 1) % clients
                };
                request(next)
            })
            .collect();
        let begun = ran_s();
        for frames in frames.chunks(FRAMES_AT_ONCE) {
            emulation.prefetch(0, frames.iter().map(Vec::as_slice));
            for frame in frames {
                emulation.handle_frame(2_000_000, 0, frame);
            }
            while emulation.poll_transmit().is_some() {
                answers += 1;
            }
        }
        ran += ran_s() - begun;
    }
    assert_eq!(answers, FRAMES / BURST * BURST, "every frame is answered");
    answers as f64 / ran
}

/// The transaction id and the number of the client of a frame, if it asks for a lease.
fn dhcp_of(frame: &[u8]) -> Option<([u8; 4], u32)> {
    let is_dhcp = frame.len() > 282 && frame[12..14] == [8, 0] && frame[34..38] == [0, 68, 0, 67];
    let [.., b, c, d] = frame.get(CHADDR)? else {
        return None;
    };
    let number = u32::from_be_bytes([0, *b, *c, *d]);
    is_dhcp.then(|| (frame[XID].try_into().expect("four bytes"), number))
}

/// What a server says to a client that asks, but for what differs from client to client.
fn reply(kind: MessageType) -> Vec<u8> {
    let mut message = vec![0; HEADER_BYTES];
    DhcpHeader::new(REPLY, MacAddress::ZERO, 0).emit(&mut message);
    let server = SERVER.octets();
    message.extend([code::MESSAGE_TYPE, 1, kind.0, code::SERVER_ID, 4]);
    message.extend(server);
    message.extend([code::ROUTER, 4]);
    message.extend(server);
    message.extend([code::LEASE_TIME, 4]);
    message.extend(7200_u32.to_be_bytes());
    message.push(code::END);
    let udp = UdpHeader {
        source_port: 67,
        destination_port: 68,
        length_bytes: 8 + message.len() as u16,
    };
    let ip = Ipv4Header {
        total_bytes: 20 + udp.length_bytes,
        ..Ipv4Header::new(SERVER, Ipv4Addr::BROADCAST, IpProtocol::UDP)
    };
    let mut headers = vec![0; 28];
    ip.emit(&mut headers);
    udp.emit(&mut headers[20..]);
    let link = [&[0; 6][..], &SERVER_MAC, &[8, 0]].concat();
    [link, headers, message].concat()
}

/// Adds all clients; gives who asks for a lease, how many frames they sent, and the seconds it took.
fn add_all(emulation: &mut Emulation, requests: &[String]) -> (Vec<([u8; 4], u32)>, u32, f64) {
    let (mut asked, mut frames) = (Vec::new(), 0);
    let begun = ran_s();
    for request in requests {
        let reply = emulation.handle_message(1_000_000, request.as_bytes());
        assert!(
            reply.windows(13).any(|text| text == b"\"result\":true"),
            "{reply:?}"
        );
        while let Some(sent) = emulation.poll_transmit() {
            frames += 1;
            asked.extend(dhcp_of(sent.frame));
        }
    }
    (asked, frames, ran_s() - begun)
}

/// Writes a client, and the address that it gets, into a server's reply.
fn address_to(reply: &mut [u8], (xid, number): ([u8; 4], u32)) {
    reply[..6].copy_from_slice(&mac(number));
    reply[XID].copy_from_slice(&xid);
    reply[58..62].copy_from_slice(&(0x0a00_0001 + number).to_be_bytes());
    reply[CHADDR].copy_from_slice(&mac(number));
}

/// Gives a server's reply to each client, and takes what they send. Returns who asks for a lease now,
/// and what that took.
fn reply_to_all(
    emulation: &mut Emulation,
    asked: &[([u8; 4], u32)],
    reply: &mut [u8],
) -> (Vec<([u8; 4], u32)>, f64) {
    let mut asks = Vec::with_capacity(asked.len());
    let begun = ran_s();
    for &of in asked {
        address_to(reply, of);
        emulation.handle_frame(2_000_000, 0, reply);
        while let Some(sent) = emulation.poll_transmit() {
            asks.extend(dhcp_of(sent.frame));
        }
    }
    (asks, ran_s() - begun)
}

/// Leases a second when all offers come at once, and then all acknowledgements.
fn leases_per_second(emulation: &mut Emulation, asked: &[([u8; 4], u32)]) -> f64 {
    let (mut offer, mut ack) = (reply(MessageType::OFFER), reply(MessageType::ACK));
    let (requested, offers_s) = reply_to_all(emulation, asked, &mut offer);
    assert_eq!(requested.len(), asked.len(), "every offer is taken");
    let (_, acks_s) = reply_to_all(emulation, &requested, &mut ack);
    asked.len() as f64 / (offers_s + acks_s)
}

/// Leases a second when each client that comes is answered at once.
fn leases_while_adding(requests: &[String], clients: u32, names: &Map<String, Value>) -> f64 {
    let mut emulation = with_namespace(names);
    let (mut offer, mut ack) = (reply(MessageType::OFFER), reply(MessageType::ACK));
    let mut asked = Vec::new();
    let begun = ran_s();
    for request in requests {
        emulation.handle_message(1_000_000, request.as_bytes());
        asked.clear();
        while let Some(sent) = emulation.poll_transmit() {
            asked.extend(dhcp_of(sent.frame));
        }
        let (requested, _) = reply_to_all(&mut emulation, &asked, &mut offer);
        reply_to_all(&mut emulation, &requested, &mut ack);
    }
    f64::from(clients) / (ran_s() - begun)
}

/// The share of a core that the clients need for their timers, and the frames that they send a second.
fn idle(emulation: &mut Emulation) -> (f64, f64) {
    let mut now = 2_000_000;
    let mut run = |until: u64| {
        let mut frames = 0_u64;
        let begun = ran_s();
        while let Some(due) = emulation.poll_timeout().filter(|&due| due <= until) {
            now = due.max(now);
            emulation.handle_timeout(now);
            while emulation.poll_transmit().is_some() {
                frames += 1;
            }
        }
        (ran_s() - begun, frames)
    };
    run(IDLE_S * SECOND);
    let (busy_s, frames) = run(2 * IDLE_S * SECOND);
    (busy_s / IDLE_S as f64, frames as f64 / IDLE_S as f64)
}

/// The nanoseconds that it takes for each client to sum all of them up once.
fn summing(emulation: &mut Emulation, clients: u32) -> f64 {
    let begun = ran_s();
    while !emulation.sum_up(1024) {}
    (ran_s() - begun) * 1e9 / f64::from(clients)
}

/// An emulation with one namespace.
fn with_namespace(plugins: &Map<String, Value>) -> Emulation {
    let mut emulation = Emulation::new(Settings::default(), 0);
    let tunnel = json!({"vport": 0, "plugs": plugins});
    emulation
        .handle_request(0, "ctx_add", &json!({"tunnels": [tunnel]}))
        .expect("a namespace");
    emulation
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let clients: u32 = arguments.next().map_or(100_000, |text| {
        text.parse()
            .expect("the first argument is how many clients")
    });
    let mut given: Vec<String> = arguments.collect();
    let has_server = !given.iter().any(|name| name == "no-lease");
    given.retain(|name| name != "no-lease");
    let names = match &given[..] {
        [] => ["arp", "icmp", "ipv6", "dhcp"].map(str::to_owned).to_vec(),
        _ => given,
    };
    let has = |name: &str| names.iter().any(|given| given == name);
    let plugins: Map<String, Value> = names.iter().map(|n| (n.clone(), json!({}))).collect();
    let requests = requests(clients, &plugins);
    let mut emulation = with_namespace(&plugins);

    let before = resident_bytes();
    let (asked, frames_sent, elapsed) = add_all(&mut emulation, &requests);
    let memory = resident_bytes() - before - 8 * asked.len() as u64;
    let mut report = json!({
        "clients": clients,
        "plugins": names,
        "clients_per_second": (f64::from(clients) / elapsed).round(),
        "bytes_per_client": memory as f64 / f64::from(clients),
        "bytes_per_client_by_own_account": own_account(&mut emulation),
        "frames_while_adding": frames_sent,
    });
    let requests_of = [
        ("arp", arp_request as fn(u32) -> Vec<u8>),
        ("icmp", echo_request),
    ];
    for (name, request) in requests_of.into_iter().filter(|(name, _)| has(name)) {
        let what = if name == "arp" { "arp" } else { "echo" };
        for (order, is_random) in [("", false), ("_in_random_order", true)] {
            let rate = answers_per_second(&mut emulation, clients, is_random, request);
            report[format!("{what}_answers_per_second{order}")] = json!(rate.round());
        }
    }
    if has("dhcp") && has_server {
        let at_once = leases_per_second(&mut emulation, &asked);
        report["leases_per_second_at_once"] = json!(at_once.round());
        let memory = resident_bytes() - before - 8 * asked.len() as u64;
        report["bytes_per_client_with_lease"] = json!(memory as f64 / f64::from(clients));
        report["bytes_per_client_with_lease_by_own_account"] = own_account(&mut emulation);
    }
    let (share, frames) = idle(&mut emulation);
    report["idle_share_of_core"] = json!(share);
    report["sum_ns_per_client"] = json!(summing(&mut emulation, clients));
    report["idle_frames_per_second"] = json!(frames);
    drop(emulation);
    if has("dhcp") && has_server {
        let adding = leases_while_adding(&requests, clients, &plugins);
        report["leases_per_second_while_adding"] = json!(adding.round());
    }
    println!("{report}");
}
