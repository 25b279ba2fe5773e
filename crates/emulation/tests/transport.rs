//! TCP of emulated clients, and programs over it, among hostile peers: nothing panics, nothing grows
//! without limit, and between two clients every byte arrives.

use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_packet::network::checksum::pseudo_header_v4;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4Header;
use allosaur_packet::transport::tcp::{TcpFlags, TcpHeader, TcpView};
use allosaur_packet::transport::tcp_options::TcpOptions;
use proptest::prelude::*;
use serde_json::{Value, json};

const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const BYTES: usize = 5000;

fn mac(last: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, last]
}

/// A client asks servers of another for `flows` flows, each of which moves `BYTES` bytes to and fro.
/// Each is the other's gateway.
fn two(stream: bool, rate: f64, flows: u32) -> Emulation {
    two_at(stream, rate, flows, "10.0.0.2:80")
}

/// The same, with flows to another address.
fn two_at(stream: bool, rate: f64, flows: u32, destination: &str) -> Emulation {
    let mut emulation = Emulation::new(Settings::default(), 0);
    let text = "x".repeat(BYTES / 3 * 4 / 4 * 4);
    let (send, receive) = match stream {
        true => (
            json!({"name": "tx", "buf_index": 0}),
            json!({"name": "rx", "min_bytes": text.len() / 4 * 3}),
        ),
        false => (
            json!({"name": "tx_msg", "buf_index": 1}),
            json!({"name": "rx_msg", "min_pkts": 1}),
        ),
    };
    let alive = json!({"name": "keepalive", "msec": 50});
    let program = json!({"buf_list": [text, "YWJj"],
        "program_list": [{"commands": [alive, send, receive]}, {"commands": [alive, receive, send]}],
        "templates": [{"client_template": {"program_index": 0},
            "server_template": {"assoc": [{"port": 80}], "program_index": 1}}]});
    let tunnel = json!({"vport": 1, "plugs": {"appsim": program}});
    ask(&mut emulation, "ctx_add", json!({"tunnels": [tunnel]}));
    for (last, other, role) in [(2, 1, "s"), (1, 2, "c")] {
        let stream = json!({"cps": rate, "t": role, "tid": 0, "ipv6": false, "stream": stream,
            "dst": destination, "limit": flows});
        let client = json!({"mac": mac(last), "ipv4": [10, 0, 0, last], "ipv4_dg": [10, 0, 0, other],
            "ipv4_force_dg": true, "ipv4_force_mac": mac(other),
            "plugs": {"transport": {}, "appsim": {"data": {"s": stream}}}});
        let params = json!({"tun": {"vport": 1}, "clients": [client]});
        ask(&mut emulation, "ctx_client_add", params);
    }
    emulation
}

fn ask(emulation: &mut Emulation, method: &str, params: Value) -> Value {
    let reply = emulation.handle_request(0, method, &params);
    reply.unwrap_or_else(|error| panic!("{method}: {error}"))
}

fn counters(emulation: &mut Emulation, method: &str, last: u8, table: &str) -> Value {
    let params = json!({"tun": {"vport": 1}, "mac": mac(last)});
    ask(emulation, method, params)[table].clone()
}

/// Carries frames to and fro until a time; `passes` says which arrive, and may change them.
fn run(emulation: &mut Emulation, until: Nanos, mut passes: impl FnMut(&mut Vec<u8>) -> bool) {
    let mut now = 0;
    loop {
        let mut frames = Vec::new();
        while let Some(transmit) = emulation.poll_transmit() {
            frames.push(transmit.frame.to_vec());
        }
        let is_idle = frames.is_empty();
        for mut frame in frames {
            if passes(&mut frame) {
                emulation.handle_frame(now, 1, &frame);
            }
        }
        if is_idle {
            let Some(next) = emulation.poll_timeout().filter(|next| *next <= until) else {
                return;
            };
            now = now.max(next);
            emulation.handle_timeout(now);
        }
    }
}

#[test]
fn flows_of_two_clients_move_all_their_bytes() {
    for stream in [true, false] {
        let mut emulation = two(stream, 500.0, 100);
        run(&mut emulation, 5 * SECOND, |_| true);
        let bytes = if stream { 100 * (BYTES / 3 * 3) } else { 300 };
        for last in [1, 2] {
            let found = counters(&mut emulation, "appsim_client_cnt", last, "appsim");
            assert_eq!(found["eventNewFlow"], 100, "{found}");
            assert!(found["DropConnection"].is_null(), "{found}");
            for name in ["bytesTx", "bytesRx"] {
                let close = found[name].as_u64().expect("bytes").abs_diff(bytes as u64);
                assert!(close <= 400, "{name} of {found}, not {bytes}");
            }
            let flows = counters(&mut emulation, "transport_client_cnt", last, "ft");
            assert_eq!(flows["ft_activev4"], 0, "all are forgotten: {flows}");
        }
    }
}

#[test]
fn a_server_hears_a_group_and_answers_who_asked() {
    let mut emulation = two_at(false, 100.0, 10, "239.255.255.250:1900");
    run(&mut emulation, 2 * SECOND, |_| true);
    let asked = counters(&mut emulation, "appsim_client_cnt", 1, "appsim");
    let answered = counters(&mut emulation, "appsim_client_cnt", 2, "appsim");
    assert_eq!(
        (&asked["eventTx"], &answered["event Rx"]),
        (&json!(10), &json!(10))
    );
    assert_eq!(answered["eventTx"], 10, "{answered}");
    assert_eq!(asked["event Rx"], 10, "{asked}");
    let macs = json!({"tun": {"vport": 1}, "macs": [SERVER]});
    ask(&mut emulation, "ctx_client_remove", macs);
}

#[test]
fn loss_is_repaired() {
    let mut emulation = two(true, 100.0, 20);
    let mut count = 0_u32;
    run(&mut emulation, 120 * SECOND, |_| {
        count += 1;
        count % 20 != 0
    });
    let found = counters(&mut emulation, "appsim_client_cnt", 1, "appsim");
    assert_eq!(found["bytesRx"], found["bytesTx"], "{found}");
    let tcp = counters(&mut emulation, "transport_client_cnt", 2, "tcp");
    assert!(tcp["sndrexmitpack"].as_u64() > Some(0), "{tcp}");
}

#[test]
fn a_server_that_nobody_hears_is_given_up() {
    let mut emulation = two(true, 100.0, 300);
    run(&mut emulation, 60 * SECOND, |frame| frame[..6] != SERVER);
    let flows = counters(&mut emulation, "transport_client_cnt", 1, "ft");
    assert_eq!(
        (&flows["ft_activev4"], &flows["src_port_active"]),
        (&json!(0), &json!(0))
    );
    let found = counters(&mut emulation, "appsim_client_cnt", 1, "appsim");
    assert_eq!(found["DropConnection"], 300, "{found}");
}

/// A segment from one to the other, with a right checksum.
fn segment(from: u8, to: u8, tcp: &TcpHeader, data: &[u8]) -> Vec<u8> {
    let (source, destination) = ([10, 0, 0, from].into(), [10, 0, 0, to].into());
    let ip = Ipv4Header::new(source, destination, IpProtocol::TCP);
    let (ip_bytes, tcp_bytes) = (ip.buffer_len(), tcp.buffer_len() + data.len());
    let mut frame = vec![0; 14 + ip_bytes + tcp_bytes];
    frame[..6].copy_from_slice(&mac(to));
    frame[6..12].copy_from_slice(&mac(from));
    frame[12..14].copy_from_slice(&[8, 0]);
    let total_bytes = (ip_bytes + tcp_bytes) as u16;
    Ipv4Header { total_bytes, ..ip }.emit(&mut frame[14..]);
    let bytes = &mut frame[14 + ip_bytes..];
    tcp.emit(bytes);
    bytes[tcp.buffer_len()..].copy_from_slice(data);
    let sum = pseudo_header_v4(source, destination, IpProtocol::TCP, tcp_bytes as u16);
    TcpView::new_unchecked(bytes).fill_checksum(sum);
    frame
}

/// A flow between two clients with a tunable of the template, and the network headers of its frames:
/// who sent it, type of service, hops.
fn marks(ipv6: bool, stream: bool, destination: &str, tunables: &Value) -> Vec<(u8, u8, u8)> {
    let mut emulation = Emulation::new(Settings::default(), 0);
    let names = if stream {
        ["tx", "rx"]
    } else {
        ["tx_msg", "rx_msg"]
    };
    let send = json!({"name": names[0], "buf_index": 0});
    let receive = json!({"name": names[1], "min_bytes": 3, "min_pkts": 1});
    let program = json!({"buf_list": ["YWJj"], "tunable_list": [{}, tunables],
        "program_list": [{"commands": [send, receive]}, {"commands": [receive, send]}],
        "templates": [{"client_template": {"program_index": 0, "tunable_index": 1},
            "server_template": {"assoc": [{"port": 80}], "program_index": 1, "tunable_index": 1}}]});
    let tunnel = json!({"vport": 1, "plugs": {"appsim": program}});
    ask(&mut emulation, "ctx_add", json!({"tunnels": [tunnel]}));
    let address = |last: u8| std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into());
    for (last, other, role) in [(2, 1, "s"), (1, 2, "c")] {
        let stream = json!({"cps": 100, "t": role, "tid": 0, "ipv6": ipv6, "stream": stream,
            "dst": destination, "limit": 1});
        let client = json!({"mac": mac(last), "ipv4": [10, 0, 0, last], "ipv4_dg": [10, 0, 0, other],
            "ipv4_force_dg": true, "ipv4_force_mac": mac(other), "ipv6": address(last).octets(),
            "dg_ipv6": address(other).octets(), "ipv6_force_dg": true, "ipv6_force_mac": mac(other),
            "plugs": {"transport": {}, "appsim": {"data": {"s": stream}}}});
        let params = json!({"tun": {"vport": 1}, "clients": [client]});
        ask(&mut emulation, "ctx_client_add", params);
    }
    let mut found = Vec::new();
    run(&mut emulation, SECOND, |frame| {
        let sender = frame[11];
        found.push(match frame[12..14] {
            [8, 0] => (sender, frame[15], frame[22]),
            _ => (sender, frame[14] << 4 | frame[15] >> 4, frame[21]),
        });
        true
    });
    found
}

#[test]
fn tunables_of_the_network_header_are_those_of_every_packet() {
    let (v4, v6) = ("10.0.0.2:80", "[2001:db8::2]:80");
    let group = "239.255.255.250:80";
    for (ipv6, stream, destination, hops) in [
        (false, true, v4, 128),
        (true, true, v6, 64),
        (false, false, v4, 128),
        (true, false, v6, 64),
        (false, false, group, 1),
    ] {
        for (tunables, service, hops) in [
            (json!({}), 0, hops),
            (json!({"tos": 0xb8, "ttl": 7}), 0xb8, 7),
            (json!({"ip": {"tos": 0x28, "ttl": 200}}), 0x28, 200),
        ] {
            let found = marks(ipv6, stream, destination, &tunables);
            let case = format!("{destination} {stream} {tunables}: {found:?}");
            assert!(found.len() >= 2, "{case}");
            for (sender, found_service, found_hops) in found {
                // Who answers one of a group does so to its own address.
                let to_group = hops == 1 && sender == 2;
                let hops = if to_group { 128 } else { hops };
                assert_eq!((found_service, found_hops), (service, hops), "{case}");
            }
        }
    }
}

/// How many acknowledgments a server sends at once for ten segments of 100 bytes without PSH, and how
/// many when time has passed; it has a tunable of its template, and the init JSON of its transport.
fn acknowledgments(tunables: &Value, init: &Value) -> (usize, usize) {
    let mut emulation = Emulation::new(Settings::default(), 0);
    let program = json!({"buf_list": ["YWJj"], "tunable_list": [tunables],
        "program_list": [{"commands": [{"name": "rx", "min_bytes": 5000}]}],
        "templates": [{"client_template": {"program_index": 0},
            "server_template": {"assoc": [{"port": 80}], "program_index": 0, "tunable_index": 0}}]});
    let tunnel = json!({"vport": 1, "plugs": {"appsim": program}});
    ask(&mut emulation, "ctx_add", json!({"tunnels": [tunnel]}));
    let stream = json!({"cps": 1, "t": "s", "tid": 0, "stream": true, "dst": "10.0.0.1:80"});
    let client = json!({"mac": mac(2), "ipv4": [10, 0, 0, 2], "ipv4_dg": [10, 0, 0, 1],
        "ipv4_force_dg": true, "ipv4_force_mac": mac(1),
        "plugs": {"transport": init, "appsim": {"data": {"s": stream}}}});
    let params = json!({"tun": {"vport": 1}, "clients": [client]});
    ask(&mut emulation, "ctx_client_add", params);
    while let Some(due) = emulation.poll_timeout().filter(|due| *due <= MILLISECOND) {
        emulation.handle_timeout(due);
    }
    let mut header = TcpHeader {
        source_port: 4000,
        destination_port: 80,
        sequence: 7,
        acknowledgment: 0,
        flags: TcpFlags::SYN,
        window: 60_000,
        urgent_pointer: 0,
        options: TcpOptions::EMPTY,
    };
    let count = |emulation: &mut Emulation, now: Nanos, header: &TcpHeader, data: &[u8]| {
        emulation.handle_frame(now, 1, &segment(1, 2, header, data));
        let mut sent = Vec::new();
        while let Some(transmit) = emulation.poll_transmit() {
            sent.push(transmit.frame.to_vec());
        }
        sent
    };
    let answer = count(&mut emulation, MILLISECOND, &header, b"");
    let numbers: [u8; 4] = answer[0][38..42].try_into().expect("a sequence number");
    header.acknowledgment = u32::from_be_bytes(numbers).wrapping_add(1);
    header.flags = TcpFlags::ACK;
    header.sequence += 1;
    count(&mut emulation, 2 * MILLISECOND, &header, b"");
    let mut at_once = 0;
    for _ in 0..10 {
        at_once += count(&mut emulation, 3 * MILLISECOND, &header, &[b'x'; 100]).len();
        header.sequence += 100;
    }
    let mut later = 0;
    while let Some(due) = emulation.poll_timeout().filter(|due| *due <= SECOND) {
        emulation.handle_timeout(due);
        while emulation.poll_transmit().is_some() {
            later += 1;
        }
    }
    (at_once, later)
}

#[test]
fn bytes_after_which_an_acknowledgment_leaves_may_be_none() {
    for (bytes, expected) in [(0, (0, 1)), (100, (10, 0)), (500, (2, 0)), (300, (3, 1))] {
        let found = acknowledgments(&json!({"no_delay_counter": bytes}), &json!({}));
        assert_eq!(found, expected, "{bytes} bytes of the template");
        let found = acknowledgments(&json!({}), &json!({"tcp_no_delay_counter": bytes}));
        assert_eq!(found, expected, "{bytes} bytes of the client");
    }
}

#[test]
fn a_flood_of_syns_ends_at_a_limit() {
    let mut emulation = two(true, 1.0, 1);
    let mut header = TcpHeader {
        source_port: 0,
        destination_port: 80,
        sequence: 7,
        acknowledgment: 0,
        flags: TcpFlags::SYN,
        window: 1000,
        urgent_pointer: 0,
        options: TcpOptions::EMPTY,
    };
    for number in 0..20_000_u16 {
        header.source_port = number + 1;
        emulation.handle_frame(0, 1, &segment(1, 2, &header, b""));
        while emulation.poll_transmit().is_some() {}
    }
    let flows = counters(&mut emulation, "transport_client_cnt", 2, "ft");
    assert_eq!(flows["ft_activev4"], 16_384, "{flows}");
    assert_eq!(flows["ft_new_no_accept"], 20_000 - 16_384, "{flows}");
    run(&mut emulation, 30 * SECOND, |_| false);
    let flows = counters(&mut emulation, "transport_client_cnt", 2, "ft");
    assert_eq!(flows["ft_activev4"], 0, "all were given up: {flows}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a peer changes on the way, checksums made right again.
    #[test]
    fn a_hostile_peer_does_no_harm(
        changes in proptest::collection::vec((0_usize..60, any::<u8>()), 1..400),
    ) {
        let mut emulation = two(true, 100.0, 10);
        let mut changes = changes.into_iter();
        run(&mut emulation, 20 * SECOND, |frame| {
            if let Some((at, value)) = changes.next() {
                let at = 34 + at;
                if at < frame.len() {
                    frame[at] = value;
                    let source: [u8; 4] = frame[26..30].try_into().expect("four");
                    let destination: [u8; 4] = frame[30..34].try_into().expect("four");
                    let bytes = &mut frame[34..];
                    let sum = pseudo_header_v4(source.into(), destination.into(), IpProtocol::TCP,
                        bytes.len() as u16);
                    if TcpView::new_checked(&bytes[..]).is_ok() {
                        TcpView::new_unchecked(bytes).fill_checksum(sum);
                    }
                }
            }
            true
        });
        for last in [1, 2] {
            let flows = counters(&mut emulation, "transport_client_cnt", last, "ft");
            prop_assert!(flows["ft_activev4"].as_u64() <= Some(20), "{}", flows);
        }
    }

    /// Any segments at a client that listens and one that connects.
    #[test]
    fn any_segments_do_no_harm(
        segments in proptest::collection::vec(
            (any::<bool>(), prop_oneof![Just(80_u16), Just(0xff00_u16), any::<u16>()],
             prop_oneof![Just(80_u16), Just(0xff00_u16), Just(4000_u16)],
             any::<(u32, u32, u8, u16)>(), proptest::collection::vec(any::<u8>(), 0..64)),
            0..100,
        ),
    ) {
        let mut emulation = two(true, 10.0, 5);
        let mut now = 0;
        for (to_server, source_port, destination_port, numbers, data) in segments {
            let (sequence, acknowledgment, flags, window) = numbers;
            let header = TcpHeader {
                source_port,
                destination_port,
                sequence,
                acknowledgment,
                flags: TcpFlags(flags),
                window,
                urgent_pointer: 0,
                options: TcpOptions::EMPTY,
            };
            let (from, to) = if to_server { (1, 2) } else { (2, 1) };
            emulation.handle_frame(now, 1, &segment(from, to, &header, &data));
            now += 10 * MILLISECOND;
            emulation.handle_timeout(now);
            while emulation.poll_transmit().is_some() {}
        }
    }

    /// Programs of any numbers are refused or run.
    #[test]
    fn any_program_is_refused_or_runs(
        commands in proptest::collection::vec(
            (proptest::sample::select(vec!["tx", "rx", "tx_msg", "rx_msg", "delay", "delay_rnd",
                "keepalive", "set_var", "jmp_nz", "nc", "reset", "close_msg", "connect", "tx_mode", "no"]),
             proptest::sample::select(vec![0_i64, 1, 2, 3, -1, 1000, i64::MAX]), -3_i64..4),
            0..8,
        ),
        stream in any::<bool>(),
    ) {
        let commands: Vec<Value> = commands.into_iter().map(|(name, number, offset)| json!({
            "name": name, "buf_index": number, "min_bytes": number, "min_pkts": number,
            "usec": number, "min_usec": 1, "max_usec": number, "msec": number, "id": number,
            "val": number, "offset": offset})).collect();
        let mut emulation = Emulation::new(Settings::default(), 0);
        let program = json!({"buf_list": ["YWJj"], "program_list": [{"commands": commands}],
            "templates": [{"client_template": {"program_index": 0},
                "server_template": {"program_index": 0}}]});
        let tunnel = json!({"tunnels": [{"vport": 1, "plugs": {"appsim": program}}]});
        if emulation.handle_request(0, "ctx_add", &tunnel).is_ok() {
            for (last, role) in [(2, "s"), (1, "c")] {
                let data = json!({"cps": 100, "t": role, "tid": 0, "stream": stream,
                    "dst": "10.0.0.2:80", "limit": 3});
                let client = json!({"mac": mac(last), "ipv4": [10, 0, 0, last],
                    "ipv4_dg": [10, 0, 0, 3 - last], "ipv4_force_dg": true,
                    "ipv4_force_mac": mac(3 - last),
                    "plugs": {"transport": {}, "appsim": {"data": {"s": data}}}});
                let params = json!({"tun": {"vport": 1}, "clients": [client]});
                ask(&mut emulation, "ctx_client_add", params);
            }
            let mut frames = 0;
            run(&mut emulation, SECOND, |_| {
                frames += 1;
                frames < 2000
            });
            let macs = json!({"tun": {"vport": 1}, "macs": [CLIENT, SERVER]});
            ask(&mut emulation, "ctx_client_remove", macs);
            run(&mut emulation, 2 * SECOND, |_| true);
        }
    }
}
