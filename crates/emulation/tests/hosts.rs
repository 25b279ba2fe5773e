//! IPv6 and IGMP of clients on a link where anything may happen: routers that come and go, floods,
//! frames of any bytes. Nothing panics, and no table grows beyond its end.

mod peers;

use allosaur_emulation::neighbor_cache::LEARNED_MAX;
use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use peers::router;
use proptest::prelude::*;
use serde_json::{Value, json};

const MAC: [u8; 6] = [2, 0, 0, 0, 1, 1];

struct Link {
    emulation: Emulation,
    now: Nanos,
    sent: Vec<Vec<u8>>,
}

impl Link {
    /// A namespace on port 1 with both plugins, and clients with consecutive MAC addresses.
    fn new(clients: u8) -> Link {
        let mut link = Link {
            emulation: Emulation::new(Settings::default(), 0),
            now: 0,
            sent: Vec::new(),
        };
        let plugins = json!({"ipv6": {"dmac": MAC}, "igmp": {"dmac": MAC}});
        link.ask(
            "ctx_add",
            json!({"tunnels": [{"vport": 1, "plugs": plugins}]}),
        );
        for number in 0..clients {
            link.add_client(number);
        }
        link
    }

    fn add_client(&mut self, number: u8) {
        let mut mac = MAC;
        mac[5] += number;
        let mut ipv6 = [0; 16];
        ipv6[..2].copy_from_slice(&[0x20, 1]);
        ipv6[15] = number + 1;
        let plugins = json!({"ipv6": {}, "igmp": {}});
        let ipv4 = [10, 0, 0, number + 1];
        let client = json!({"mac": mac, "ipv4": ipv4, "ipv6": ipv6, "plugs": plugins});
        let params = json!({"tun": {"vport": 1}, "clients": [client]});
        assert_eq!(self.ask("ctx_client_add", params), true);
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        if params.get("tun").is_none() {
            params["tun"] = json!({"vport": 1});
        }
        let reply = self.emulation.handle_request(self.now, method, &params);
        self.collect();
        reply.unwrap_or_else(|error| panic!("{method} {params}: {error}"))
    }

    fn receive(&mut self, frame: &[u8]) {
        self.emulation.handle_frame(self.now, 1, frame);
        self.collect();
    }

    fn wait(&mut self, time: Nanos) {
        let until = self.now + time;
        while let Some(due) = self.emulation.poll_timeout().filter(|&due| due <= until) {
            self.now = self.now.max(due);
            self.emulation.handle_timeout(self.now);
            self.collect();
        }
        self.now = until;
    }

    fn collect(&mut self) {
        while let Some(transmit) = self.emulation.poll_transmit() {
            self.sent.push(transmit.frame.to_vec());
        }
    }

    fn counter(&mut self, table: &str, name: &str) -> u64 {
        let method = if table == "igmp" {
            "igmp_ns_cnt"
        } else {
            "ipv6_ns_cnt"
        };
        let reply = self.ask(method, json!({"zero": true}));
        reply[table][name].as_u64().expect("a counter")
    }

    /// What the gateway of a client is known by.
    fn router(&mut self) -> Value {
        let info = self.ask("ctx_client_get_info", json!({"macs": [MAC]}));
        info[0]["ipv6_router"].clone()
    }

    /// The router of the link announces itself.
    fn announce_router(&mut self) {
        let asked = self.sent.iter().find_map(|frame| {
            let is_solicitation = frame.len() == 62 && frame[54] == 133;
            is_solicitation.then(|| router::answer(frame)).flatten()
        });
        let frame = asked.expect("the clients asked for routers");
        self.receive(&frame);
    }
}

#[test]
fn routers_are_asked_for_until_one_answers() {
    let mut link = Link::new(3);
    link.sent.clear();
    link.wait(4 * SECOND + MILLISECOND);
    let asked = |link: &Link| link.sent.iter().filter(|frame| frame[54] == 133).count();
    assert_eq!(asked(&link), 4);
    link.announce_router();
    link.wait(30 * SECOND);
    assert_eq!(asked(&link), 4);
    let mut silent = Link::new(1);
    silent.wait(60 * SECOND);
    assert_eq!(asked(&silent), 19);
}

#[test]
fn a_router_is_kept_only_when_it_is_valid() {
    let mut link = Link::new(1);
    link.wait(2 * SECOND);
    let valid = {
        link.announce_router();
        let frames = &link.sent;
        let solicitation = frames.iter().find(|frame| frame[54] == 133);
        router::answer(solicitation.expect("it asked")).expect("an announcement")
    };
    let before = link.router();
    assert_eq!(
        (&before["mtu"], &before["prefix_len"]),
        (&json!(1400), &json!(64))
    );
    // Offsets: hop limit 21, source 22, lifetime 60.
    let changes: [(&str, usize, [u8; 2]); 4] = [
        ("pktRxErrWrongHopLimit", 20, [58, 64]),
        ("pktRxErrRouternotLinklocal", 22, [0x20, 0x01]),
        ("pktRxRouterLifetimeZero", 60, [0, 0]),
        ("pktRxErrRouterLifetimeTooBig", 60, [0x23, 0x29]),
    ];
    for (counter, at, bytes) in changes {
        let mut frame = valid.clone();
        frame[at..at + 2].copy_from_slice(&bytes);
        fill_checksum(&mut frame);
        link.receive(&frame);
        assert_eq!(link.counter("ipv6nd", counter), 1, "{counter}");
        assert_eq!(link.router(), before, "{counter}");
    }
    assert_eq!(link.counter("ipv6nd", "pktRxRouterAdvertisement"), 5);
}

#[test]
fn a_flood_of_routers_changes_one_entry_and_costs_no_frame() {
    let mut link = Link::new(50);
    link.wait(2 * SECOND);
    link.announce_router();
    let frame = {
        let solicitation = link.sent.iter().find(|frame| frame[54] == 133);
        router::answer(solicitation.expect("it asked")).expect("an announcement")
    };
    link.sent.clear();
    let neighbors = link.counter("ipv6nd", "tblActive");
    for number in 0..5000_u16 {
        let mut frame = frame.clone();
        frame[36..38].copy_from_slice(&number.to_be_bytes());
        let place = frame.len() - 46;
        frame[place..place + 2].copy_from_slice(&number.to_be_bytes());
        fill_checksum(&mut frame);
        link.receive(&frame);
    }
    link.wait(SECOND);
    assert_eq!(link.counter("ipv6nd", "pktRxRouterAdvertisement"), 5001);
    assert_eq!(link.sent, Vec::<Vec<u8>>::new());
    assert_eq!(link.counter("ipv6nd", "tblActive"), neighbors);
}

#[test]
fn learned_neighbors_have_an_end_and_are_forgotten() {
    let mut link = Link::new(1);
    let one = router::advertisements(1).next().expect("one");
    for number in 0..LEARNED_MAX as u32 + 100 {
        let mut frame = one.clone();
        // The target, and with it the checksum.
        frame[62 + 8..62 + 12].copy_from_slice(&number.to_be_bytes());
        fill_checksum(&mut frame);
        link.receive(&frame);
    }
    assert_eq!(link.counter("ipv6nd", "tblActive"), LEARNED_MAX as u64);
    link.wait(61 * SECOND);
    assert_eq!(link.counter("ipv6nd", "tblActive"), 0);
    assert_eq!(link.counter("ipv6nd", "tblRemove"), LEARNED_MAX as u64);
}

#[test]
fn a_gateway_is_asked_for_known_and_lost() {
    let mut link = Link::new(0);
    let gateway = [0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    let client = json!({
        "mac": MAC, "dg_ipv6": gateway,
        "plugs": {"ipv6": {"nd_timer_disable": true}},
    });
    link.ask("ctx_client_add", json!({"clients": [client]}));
    let state = |link: &mut Link| {
        let page = link.ask("ipv6_nd_ns_iter", json!({"reset": true, "count": 9}));
        let info = link.ask("ctx_client_get_info", json!({"macs": [MAC]}));
        assert_eq!(page["data"][0]["resolve"], info[0]["ipv6_dgw"]["resolve"]);
        page["data"][0]["state"].as_u64().expect("a state")
    };
    assert_eq!(state(&mut link), 17);
    let is_question = |frame: &&Vec<u8>| frame.len() == 86 && frame[54] == 135;
    let question = link.sent.iter().find(is_question).expect("a question");
    let answer = router::answer(question).expect("an answer");
    link.receive(&answer);
    assert_eq!(state(&mut link), 18);
    // Nobody hears of it for ten minutes: it is asked for three times, and then given up.
    link.sent.clear();
    link.wait(600 * SECOND);
    let questions = |link: &Link| link.sent.iter().filter(is_question).count();
    assert_eq!((state(&mut link), questions(&link)), (19, 1));
    link.wait(2 * SECOND);
    assert_eq!((state(&mut link), questions(&link)), (17, 3));
    link.receive(&answer);
    assert_eq!(state(&mut link), 18);
    link.ask("ctx_client_remove", json!({"macs": [MAC]}));
    assert_eq!(link.counter("ipv6nd", "disasociateWithClient"), 1);
    link.wait(61 * SECOND);
    assert_eq!(link.counter("ipv6nd", "tblActive"), 0);
}

#[test]
fn clients_ping_each_other() {
    let mut link = Link::new(2);
    let mut target = [0; 16];
    target[..2].copy_from_slice(&[0x20, 1]);
    target[15] = 2;
    let ping = json!({"mac": MAC, "dst": target, "amount": 3, "pace": 10, "payloadSize": 64});
    link.sent.clear();
    link.ask("ipv6_start_ping", ping);
    for _ in 0..3 {
        let mut request = link.sent.pop().expect("a request");
        // The link brings it to the other client, which nobody resolved.
        request[..6].copy_from_slice(&[2, 0, 0, 0, 1, 2]);
        link.receive(&request);
        let reply = link.sent.pop().expect("a reply");
        assert_eq!((&reply[..6], reply[54]), (&MAC[..], 129));
        link.wait(MILLISECOND);
        link.receive(&reply);
        link.wait(99 * MILLISECOND);
    }
    let stats = link.ask("ipv6_get_ping_stats", json!({"mac": MAC}));
    let stats = &stats["icmp_ping_stats"];
    assert_eq!(
        (&stats["repliesInOrder"], &stats["avgLatency"]),
        (&json!(3), &json!(1000))
    );
    link.wait(5 * SECOND);
    let gone = link.emulation.handle_request(
        link.now,
        "ipv6_get_ping_stats",
        &json!({"tun": {"vport": 1}, "mac": MAC}),
    );
    assert!(gone.is_err_and(|error| error.to_string().starts_with("No available ping")));
}

#[test]
fn groups_of_the_init_json_are_joined_when_the_designator_comes() {
    let mut link = Link::new(0);
    let groups = json!([[239, 1, 1, 1]]);
    let plugins = json!({"igmp": {"dmac": MAC, "vec": groups, "version": 2}});
    link.ask(
        "ctx_add",
        json!({"tunnels": [{"vport": 2, "plugs": plugins}]}),
    );
    let client = json!({"mac": MAC, "ipv4": [10, 0, 0, 1], "plugs": {"igmp": {}}});
    link.ask(
        "ctx_client_add",
        json!({"tun": {"vport": 2}, "clients": [client]}),
    );
    let [report] = &link.sent[..] else {
        panic!("{} frames", link.sent.len());
    };
    // To the group, as version 2 has it, from its designator.
    assert_eq!(report[..6], [1, 0, 0x5e, 1, 1, 1]);
    assert_eq!((report[38], &report[42..46]), (0x16, &[239, 1, 1, 1][..]));
}

/// Bytes of hexadecimal digits.
fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
    digits.map(|pair| byte(pair).expect("digits")).collect()
}

#[test]
fn two_hundred_groups_are_told_in_the_time_of_the_query() {
    // General queries of IGMPv3 (2.4 s) and MLDv2 (7.808 s), as recorded.
    let igmp = "01005e000001000000020000080046000024\
                00cc0000010233fd1000000ae0000001940400001118ecd3000000000214000000000000";
    let mld = "020000000101000000020000\
               86dd600000000024000100000000000000000000000000000000ff020000000000000000000000000016\
               3a0005020000000082005e001e8000000000000000000000000000000000000002100000";
    let v4: Vec<[u8; 4]> = (0..200).map(|number| [239, 1, 0, number]).collect();
    let v6: Vec<Vec<u8>> = (0..200)
        .map(|number| [&[0xff, 5], &[0; 13][..], &[number]].concat())
        .collect();
    for (method, groups, query, max_response, report) in [
        (
            "igmp_ns_add",
            json!(v4),
            igmp,
            2400 * MILLISECOND,
            (0x22, 38),
        ),
        (
            "ipv6_mld_ns_add",
            json!(v6),
            mld,
            7808 * MILLISECOND,
            (143, 62),
        ),
    ] {
        let mut link = Link::new(1);
        link.ask(method, json!({"vec": groups}));
        link.wait(30 * SECOND);
        link.sent.clear();
        link.receive(&bytes(query));
        link.wait(max_response);
        let (kind, at) = report;
        let is_report = |frame: &&Vec<u8>| frame[at] == kind;
        let records = |frame: &Vec<u8>| u32::from(frame[at + 6]) << 8 | u32::from(frame[at + 7]);
        let told: u32 = link.sent.iter().filter(is_report).map(records).sum();
        assert!(told >= 200, "{method}: {told} groups in time");
        let in_time = link.sent.iter().filter(is_report).count();
        link.wait(20 * SECOND);
        assert_eq!(
            link.sent.iter().filter(is_report).count(),
            in_time,
            "{method}"
        );
    }
}

#[test]
fn a_wrong_init_json_is_refused_with_the_field() {
    let mut link = Link::new(0);
    let wrong = [
        (
            json!({"igmp": {"mtu": 100}}),
            "mtu is 100; it must be from 256 to 9000",
        ),
        (
            json!({"igmp": {"version": 4}}),
            "version is 4; it must be from 1 to 3",
        ),
        (
            json!({"ipv6": {"version": 3}}),
            "version is 3; it must be from 1 to 2",
        ),
        (
            json!({"ipv6": {"dmac": "x"}}),
            "into Go value of type core.MACKey",
        ),
    ];
    for (port, (plugins, text)) in (10..).zip(wrong) {
        let params = json!({"tunnels": [{"vport": port, "plugs": plugins}]});
        let error = link
            .emulation
            .handle_request(0, "ctx_add", &params)
            .unwrap_err();
        assert!(error.to_string().ends_with(text), "{error}");
    }
}

/// Writes the right checksum into a frame of ICMPv6 without tags and extension headers.
fn fill_checksum(frame: &mut [u8]) {
    frame[56..58].fill(0);
    let length = frame.len() - 54;
    let pseudo = length as u64 + 58;
    let words = frame[22..].chunks(2);
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u64 = pseudo + words.map(word).sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[56..58].copy_from_slice(&(!sum as u16).to_be_bytes());
}

/// Frames that look like ICMPv6 or IGMP for a while, with the right checksums.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(vec![1u8, 128, 129, 130, 131, 132, 133, 134, 135, 136]);
    let hops = prop::sample::select(vec![1u8, 64, 255]);
    let bytes = prop::collection::vec(prop_oneof![0u8..6, any::<u8>()], 8..120);
    (kinds, hops, bytes, any::<bool>(), any::<[u8; 4]>()).prop_map(
        |(kind, hops, mut message, is_ours, address)| {
            message[0] = kind;
            let mut frame = MAC.to_vec();
            frame.extend([2, 0, 0, 0, 9, 9, 0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((message.len() as u16).to_be_bytes());
            frame.extend([58, hops, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            frame.extend(address);
            frame.extend([0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            if is_ours && message.len() >= 24 {
                message[8..24]
                    .copy_from_slice(&[0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            }
            frame.extend(message);
            fill_checksum(&mut frame);
            frame
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each frame is answered by one at most, and state stays whole.
    #[test]
    fn any_messages_are_safe(frames in prop::collection::vec(any_frame(), 1..40)) {
        let mut link = Link::new(2);
        link.wait(100 * MILLISECOND);
        for frame in &frames {
            link.sent.clear();
            link.receive(frame);
            prop_assert!(link.sent.len() <= 1, "{} answers", link.sent.len());
        }
        link.wait(100 * SECOND);
        prop_assert!(link.counter("ipv6nd", "tblActive") <= frames.len() as u64);
        link.ask("ctx_client_remove", json!({"macs": [MAC, [2, 0, 0, 0, 1, 2]]}));
        link.wait(SECOND);
        link.ask("ctx_remove", json!({"tunnels": [{"vport": 1}]}));
    }
}
