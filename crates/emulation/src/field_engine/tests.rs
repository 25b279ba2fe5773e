//! The recorded dumps of the reference, and properties of engines over random parameters.

use super::{EngineError, FieldEngines, Random};
use allosaur_testkit::data;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// SplitMix64, as the plugin that owns the engines has it.
struct SplitMix64(u64);

impl Random for SplitMix64 {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn scenarios() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for path in data::files("emu/scenarios", ".json.gz") {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with("field_engine__") {
            let scenario = serde_json::from_str(&data::text(&path));
            found.push((name, scenario.expect("a scenario is JSON")));
        }
    }
    assert!(
        found.len() >= 17,
        "only {} scenarios of engines",
        found.len()
    );
    found
}

/// The values of one engine in the dumps of the reference.
fn recorded(scenario: &Value, (offset, size): (usize, usize)) -> Vec<Vec<u8>> {
    let dumps = scenario["expected_buffers_hex"].as_array().expect("dumps");
    let hex = |dump: &Value| -> Vec<u8> {
        let text = dump.as_str().expect("hex").as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16).expect("hex") as u8;
        text.chunks(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect()
    };
    dumps
        .iter()
        .map(|dump| hex(dump)[offset..offset + size].to_vec())
        .collect()
}

fn is_random(engine: &Value) -> bool {
    let kind = engine["engine_type"].as_str().unwrap_or_default();
    engine["params"]["op"] == "rand" || kind == "float" || kind.starts_with("histogram")
}

/// Text up to a random query, for URLs; all of it for others.
fn essence(engine: &Value, value: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(value).into_owned();
    match (engine["engine_type"].as_str(), text.split_once("?q=")) {
        (Some("histogram_url"), Some((before, query))) => {
            let query = query.trim_end_matches('\0');
            assert!(
                query.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{text}"
            );
            before.as_bytes().to_vec()
        }
        _ => value.to_vec(),
    }
}

fn check_random(name: &str, engine: &Value, ours: &[Vec<u8>], theirs: &[Vec<u8>]) {
    let params = &engine["params"];
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0_u64, |all, byte| all << 8 | u64::from(*byte))
    };
    match engine["engine_type"].as_str().expect("a type") {
        "uint" => {
            let (min, max) = (params["min"].as_u64().unwrap_or(0), params["max"].as_u64());
            for value in ours.iter().chain(theirs) {
                let value = number(value);
                assert!((min..=max.unwrap()).contains(&value), "{name}: {value}");
            }
            assert_eq!(ours[0], theirs[0], "{name}: the first value is not random");
        }
        "float" => {
            let (min, max) = (
                params["min"].as_f64().unwrap(),
                params["max"].as_f64().unwrap(),
            );
            let mut sum = 0.0;
            for bytes in ours {
                let bits = number(bytes);
                let value = match bytes.len() {
                    8 => f64::from_bits(bits),
                    _ => f64::from(f32::from_bits(bits as u32)),
                };
                assert!(value >= min && value <= max, "{name}: {value}");
                sum += value;
            }
            let mean = (sum / ours.len() as f64 - min) / (max - min);
            assert!((mean - 0.5).abs() < 0.02, "{name}: the mean is at {mean}");
        }
        _ => {
            let set = |values: &[Vec<u8>]| -> BTreeSet<Vec<u8>> {
                values.iter().map(|value| essence(engine, value)).collect()
            };
            assert_eq!(set(ours), set(theirs), "{name}: the values that are drawn");
            if params["op"] == "rand" {
                assert_eq!(ours[0], theirs[0], "{name}: the first value is not random");
            }
        }
    }
}

#[test]
fn the_recorded_scenarios_hold() {
    for (name, scenario) in scenarios() {
        let engines = &scenario["setup"]["engines"];
        let parsed = match engines {
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(value) => FieldEngines::parse(&value),
                Err(error) => Err(EngineError::new(error.to_string())),
            },
            value => FieldEngines::parse(value),
        };
        let error = &scenario["expected_error"];
        if error.is_object() {
            let text = parsed.expect_err(&name).to_string();
            // Texts that are no JSON are refused in the words of the JSON parser at hand.
            assert!(
                engines.is_string() || text == error["full_text"],
                "{name}: {text}"
            );
            continue;
        }
        let mut engines_of = parsed.unwrap_or_else(|error| panic!("{name}: {error}"));
        let size = scenario["setup"]["buffer_size"].as_u64().expect("a size") as usize;
        let mut random = SplitMix64(7);
        let mut buffer = vec![0; size];
        let mut dumps = Vec::new();
        for _ in 0..20_000 {
            engines_of
                .update(&mut random, &mut buffer)
                .expect("a buffer with room");
            dumps.push(buffer.clone());
        }
        for (index, engine) in engines.as_array().expect("a list").iter().enumerate() {
            let (offset, size) = engines_of.place(index);
            let theirs = recorded(&scenario, (offset, size));
            let ours = dumps
                .iter()
                .map(|dump| dump[offset..offset + size].to_vec());
            let ours: Vec<Vec<u8>> = ours.collect();
            if is_random(engine) {
                check_random(&name, engine, &ours, &theirs);
            } else {
                assert_eq!(ours[..theirs.len()], theirs[..], "{name}: {engine}");
            }
        }
    }
}

fn values(engines: Value, count: usize) -> Vec<Vec<u64>> {
    let mut engines = FieldEngines::parse(&engines).expect("engines");
    let mut random = SplitMix64(1);
    let mut all = Vec::new();
    for _ in 0..count {
        let mut record = Vec::new();
        for engine in 0..engines.len() {
            let mut out = [0; 8];
            let size = engines.next(engine, &mut random, &mut out);
            record.push(
                out[..size]
                    .iter()
                    .fold(0, |all, byte| all << 8 | u64::from(*byte)),
            );
        }
        all.push(record);
    }
    all
}

#[test]
fn a_range_wraps_and_repeats() {
    let range = |params: Value| {
        let engines = json!([{"engine_type": "uint", "engine_name": "f", "params": params}]);
        values(engines, 6).concat()
    };
    let down = json!({"size": 1, "min": 1, "max": 5, "init": 1, "step": 2, "op": "dec"});
    assert_eq!(range(down), [1, 4, 2, 5, 3, 1]);
    let twice = json!({"size": 2, "min": 7, "max": 9, "repeat": 2, "op": "inc"});
    assert_eq!(range(twice), [7, 7, 8, 8, 9, 9]);
    let far = json!({"size": 1, "min": 0, "max": 2, "step": 4, "op": "inc"});
    assert_eq!(
        range(far),
        [0, 1, 2, 0, 1, 2],
        "a step is taken modulo the range"
    );
    let all = json!({"size": 8, "min": 0, "max": u64::MAX, "init": u64::MAX, "op": "inc"});
    assert_eq!(range(all), [u64::MAX, 0, 1, 2, 3, 4]);
}

#[test]
fn times_of_a_flow_follow_each_other() {
    let start = json!({"engine_type": "time_start", "engine_name": "start", "params": {
        "size": 4, "offset": 0, "time_end_engine_name": "end", "time_offset": 1000,
        "ipg_min": 10, "ipg_max": 10}});
    let end = json!({"engine_type": "time_end", "engine_name": "end", "params": {
        "size": 4, "offset": 4, "time_start_engine_name": "start",
        "duration_min": 5, "duration_max": 5}});
    let expected = [[1000, 1005], [1015, 1020], [1030, 1035]];
    assert_eq!(values(json!([start, end]), 3), expected);
    let swapped = values(json!([end, start]), 3);
    assert_eq!(swapped, expected.map(|[start, end]| [end, start]));
    let error = FieldEngines::parse(&json!([start])).expect_err("one is missing");
    assert!(error.to_string().contains("'start' and 'end'"), "{error}");
}

#[test]
fn limits_are_refused_with_their_name() {
    let refused = |engine_type: &str, params: Value, text: &str| {
        let engines = json!([{"engine_type": engine_type, "engine_name": "f", "params": params}]);
        let error = FieldEngines::parse(&engines).expect_err(text).to_string();
        assert!(error.contains(text), "{error}");
    };
    refused(
        "uint",
        json!({"min": 0, "max": 5, "op": "inc"}),
        "size is missing",
    );
    refused(
        "uint",
        json!({"size": 2, "min": 0, "op": "inc"}),
        "max is missing",
    );
    refused(
        "uint",
        json!({"size": 2, "max": 70000, "op": "inc"}),
        "70000 cannot be",
    );
    refused(
        "int",
        json!({"size": 1, "min": -129, "max": 1, "op": "inc"}),
        "-129 cannot be",
    );
    refused(
        "int",
        json!({"size": 1, "min": "a", "max": 1, "op": "inc"}),
        "min must be",
    );
    refused(
        "float",
        json!({"size": 4, "min": 1, "max": 1e300}),
        "cannot be represented",
    );
    refused(
        "uint_list",
        json!({"size": 1, "list": [], "op": "inc"}),
        "can't be empty",
    );
    refused(
        "uint_list",
        json!({"size": 1, "list": [1], "init_index": 1, "op": "inc"}),
        "init_index",
    );
    refused(
        "string_list",
        json!({"size": 2, "list": ["abc"], "op": "inc"}),
        "longer than size 2",
    );
    refused(
        "histogram_uint",
        json!({"size": 2, "entries": []}),
        "can't be empty",
    );
    refused(
        "histogram_uint",
        json!({"size": 2, "entries": [{"v": 1, "prob": 0}]}),
        "zero",
    );
    refused(
        "histogram_uint64",
        json!({"size": 4, "entries": [{"v": 1, "prob": 1}]}),
        "size 4",
    );
    let url = json!({"size": 8, "entries": [{"schemes": ["http"], "hosts": ["abc"], "prob": 1}]});
    refused("histogram_url", url, "10 bytes");
}

proptest! {
    #[test]
    fn a_range_of_any_limits_stays_within_them(
        limits in any::<[i64; 3]>(), step in any::<u64>(), op in 0..3_usize, seed in any::<u64>(),
    ) {
        let [mut min, mut init, mut max] = limits;
        let mut sorted = [min, init, max];
        sorted.sort_unstable();
        [min, init, max] = sorted;
        let op = ["inc", "dec", "rand"][op];
        let params = json!({"size": 8, "min": min, "max": max, "init": init, "step": step, "op": op});
        let engines = json!([{"engine_type": "int", "engine_name": "f", "params": params}]);
        let mut engines = FieldEngines::parse(&engines).expect("limits in order");
        let mut random = SplitMix64(seed);
        for _ in 0..20 {
            let mut out = [0; 8];
            prop_assert_eq!(engines.next(0, &mut random, &mut out), 8);
            prop_assert!((min..=max).contains(&i64::from_be_bytes(out)));
        }
    }

    /// Whatever the parameters are, a list is either refused or writes within its size.
    #[test]
    fn any_parameters_are_refused_or_work(
        kind in 0..KINDS.len(), size in 0..12_u64, numbers in any::<[i32; 4]>(),
        text in "[a-z/%é]{0,6}", op in 0..4_usize,
    ) {
        let op = ["inc", "dec", "rand", "x"][op];
        let [a, b, c, d] = numbers;
        let entry = json!({"v": a, "min": b, "max": c, "list": [a, b], "prob": d, "str": text,
            "schemes": ["h"], "hosts": [text], "paths": [text], "queries": [text]});
        let params = json!({"size": size, "min": a, "max": b, "init": c, "step": d, "op": op,
            "list": if kind == 6 { json!([text]) } else { json!([a, b, c]) }, "init_index": d,
            "entries": [entry]});
        let engines = json!([{"engine_type": KINDS[kind], "engine_name": "f", "params": params}]);
        if let Ok(mut engines) = FieldEngines::parse(&engines) {
            let mut random = SplitMix64(1);
            let mut out = [0; 12];
            for _ in 0..10 {
                let length = engines.next(0, &mut random, &mut out);
                prop_assert!(length as u64 <= size);
            }
        }
    }
}

/// Names of engine types without the two of times.
const KINDS: [&str; 21] = [
    "uint",
    "int",
    "float",
    "uint_list",
    "int_list",
    "float_list",
    "string_list",
    "histogram_uint",
    "histogram_uint_range",
    "histogram_uint_list",
    "histogram_int",
    "histogram_int_range",
    "histogram_int_list",
    "histogram_uint64",
    "histogram_uint64_range",
    "histogram_uint64_list",
    "histogram_int64",
    "histogram_int64_range",
    "histogram_int64_list",
    "histogram_url",
    "histogram_string",
];

/// The examples of the guide: the engines of a block, and the values of the line behind it.
fn examples() -> Vec<(Value, String)> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guide/emulation/record-engines.md"
    );
    let guide = std::fs::read_to_string(path).expect("the guide is there");
    let blocks = guide.split("```json\n").skip(1);
    blocks
        .map(|block| {
            let (engines, rest) = block.split_once("```\n\n").expect("a block ends");
            let line = rest.lines().next().expect("a line follows").to_owned();
            let engines: Value = serde_json::from_str(engines).expect("an example is JSON");
            let list = if engines.is_array() {
                engines
            } else {
                json!([engines])
            };
            (list, line)
        })
        .collect()
}

#[test]
fn the_guide_has_an_example_of_each_type_and_says_what_it_gives() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let mut types = BTreeSet::new();
    for (list, line) in examples() {
        let mut engines = FieldEngines::parse(&list).expect(&line);
        let mut random = SplitMix64(7);
        let gives: Vec<Vec<&str>> = line
            .split('`')
            .skip(1)
            .step_by(2)
            .map(|values| values.split(' ').collect())
            .collect();
        assert_eq!(gives.len(), engines.len(), "{line}");
        let is_any = line.starts_with("Gives any of");
        let rounds = if is_any { 500 } else { gives[0].len() };
        let mut found = vec![Vec::new(); engines.len()];
        for _ in 0..rounds {
            for (engine, found) in found.iter_mut().enumerate() {
                let mut out = vec![0; engines.place(engine).1];
                let length = engines.next(engine, &mut random, &mut out);
                found.push(hex(&out[..length]));
            }
        }
        for (engine, (found, gives)) in found.iter().zip(&gives).enumerate() {
            types.insert(
                list[engine]["engine_type"]
                    .as_str()
                    .expect("a text")
                    .to_owned(),
            );
            if is_any {
                let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
                assert_eq!(found, gives.iter().copied().collect(), "{line}");
            } else {
                assert_eq!(found, gives, "{line}");
            }
        }
    }
    assert_eq!(types.len(), 23, "{types:?}");
}
