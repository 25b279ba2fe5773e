//! Values of all types, and init JSON that is wrong.

use allosaur_engine::time::SECOND;
use allosaur_packet::MacAddress;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::test_net::Net;

const MAC: MacAddress = MacAddress([0, 0, 0, 0x70, 1, 1]);
/// Where the object of a message over IPv4 begins, without the prefix of a structure.
const OBJECT: usize = 42 + 43;

fn init() -> Value {
    let luid = |last: u8| json!([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    json!({
        "dst": "1.1.1.1:8080", "rate_pps": 10,
        "header": {"uuid": 1, "luid": luid(0)},
        "meta_data": [
            {"name": "e", "type": "enum_def", "data": {"luid": luid(1),
                "entries": [{"name": "A", "value": -1}, {"name": "B", "value": 2}]}},
            {"name": "f", "type": "flag_def", "data": {"luid": luid(2), "entries": ["X", "Y"]}},
            {"name": "t", "type": "type_def", "data": {"luid": luid(3), "entries": [
                {"name": "e", "type": "e"}, {"name": "f", "type": "f"},
                {"name": "c", "type": "char"}, {"name": "i", "type": "int16"},
                {"name": "u", "type": "uint64"}, {"name": "d", "type": "float"}]}},
        ],
        "object": {"name": "o", "type": "t"},
        "init_values": [
            {"path": "o.e", "value": "A"}, {"path": "o.f", "value": ["Y"]},
            {"path": "o.c", "value": "z"}, {"path": "o.i", "value": -2},
            {"path": "o.u", "value": 258}, {"path": "o.d", "value": 1.0},
        ],
        "engines": [],
    })
}

fn add(net: &mut Net, init: &Value) -> Result<(), String> {
    let fields = json!({
        "ipv4": [16, 0, 0, 1], "ipv4_force_dg": true, "ipv4_force_mac": [0, 0, 0, 0, 0, 9],
    });
    net.add(MAC, fields, json!({ "tdl": init }))
}

#[test]
fn values_of_all_types_are_written() {
    let mut net = Net::new(&[], &[]);
    add(&mut net, &init()).expect("it is right");
    net.wait(SECOND / 10);
    let frame = net.sent_one();
    let object = [
        &[0; 6][..],
        &[0, 255, 255, 255, 255],
        &[0, 0, 0, 0, 0, 2],
        b"z",
        &[255, 254],
        &[0, 0, 0, 0, 0, 0, 1, 2],
        &[0x3f, 0x80, 0, 0],
    ];
    assert_eq!(frame[OBJECT..], object.concat());
}

#[test]
fn engines_name_entries_or_write_numbers() {
    let mut net = Net::new(&[], &[]);
    let mut init = init();
    init["engines"] = json!([
        {"engine_name": "o.e", "engine_type": "string_list",
            "params": {"size": 3, "op": "inc", "list": ["A", "B", "?"]}},
        {"engine_name": "o.i", "engine_type": "uint",
            "params": {"size": 1, "offset": 1, "op": "inc", "min": 1, "max": 9}},
    ]);
    add(&mut net, &init).expect("it is right");
    net.wait(SECOND * 3 / 10);
    let sent = net.sent().into_iter();
    let values: Vec<(u8, u8)> = sent
        .map(|(_, frame)| (frame[OBJECT + 10], frame[OBJECT + 19]))
        .collect();
    // What is no entry is written as it is.
    assert_eq!(values, [(255, 1), (2, 2), (2, 3)]);
    assert_eq!(net.counters("tdl_c_cnt", MAC)["pktsTx"], 3);
}

#[test]
fn errors_name_what_is_wrong() {
    let mut net = Net::new(&[], &[]);
    let mut refused = |place: &str, value: Value, words: &str| {
        let mut init = init();
        *init.pointer_mut(place).expect("it is there") = value;
        let error = add(&mut net, &init).expect_err(words);
        assert!(error.contains(words), "{error}");
        net.remove(MAC);
    };
    refused(
        "/init_values/0/value",
        json!("C"),
        "value of o.e: there is no C",
    );
    refused("/init_values/3/value", json!(40_000), "value of o.i: ");
    refused("/init_values/2/value", json!("no"), "write one character");
    refused("/meta_data/2/data/entries/0/type", json!("t"), "too deep");
    refused(
        "/meta_data/2/data/entries/0/type",
        json!("?"),
        "type ? of variable o.e",
    );
    refused(
        "/meta_data/1/data/luid/15",
        json!(1),
        "has the luid of another",
    );
    refused("/meta_data/1/name", json!("e"), "each once");
    refused("/meta_data/0/type", json!("x"), "its type is 'x'");
    refused("/dst", json!("host:80"), "write an address and a port");
    refused("/rate_pps", json!(1e9), "rate_pps");
}

const PLACES: [&str; 14] = [
    "/dst",
    "/rate_pps",
    "/header",
    "/header/uuid",
    "/header/luid",
    "/meta_data",
    "/meta_data/0",
    "/meta_data/0/data",
    "/meta_data/1/data/entries",
    "/meta_data/2/data/entries/1",
    "/object",
    "/object/type",
    "/init_values/1",
    "/engines",
];

proptest! {
    #[test]
    fn no_init_panics(place in 0..PLACES.len(), choice in 0..7_usize, number in any::<i64>()) {
        let values = [
            json!(null), json!(number), json!("t"), json!([number]), json!({"name": "o"}),
            json!({"path": "o.f", "value": [number]}),
            json!([{"engine_name": "o.f", "engine_type": "uint",
                "params": {"size": 8, "offset": number as u16, "op": "dec", "max": 9}}]),
        ];
        let mut init = init();
        *init.pointer_mut(PLACES[place]).expect("it is there") = values[choice].clone();
        let mut net = Net::new(&[], &[]);
        if add(&mut net, &init).is_ok() {
            net.wait(SECOND / 5);
        }
        net.remove(MAC);
    }
}
