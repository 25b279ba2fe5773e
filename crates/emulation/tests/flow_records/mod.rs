//! Packets of IPFIX and NetFlow 9 without what cannot be equal: times, and fields whose engines draw at random.

use std::collections::BTreeMap;

use serde_json::Value;

/// Where the payload of a datagram over IPv4 begins, without tags.
const PAYLOAD: usize = 42;
const VARIABLE: u64 = 0xffff;
/// Where the only random value of a message of TDL in the recordings is.
const ENUMERATION: std::ops::Range<usize> = PAYLOAD + 58..PAYLOAD + 62;

/// A field: its length, if it is fixed, and which bytes are random.
struct Field {
    bytes: Option<usize>,
    random: Vec<(usize, usize)>,
}

/// What the packets of a scenario have in them, by the number of the template.
#[derive(Default)]
pub(crate) struct FlowRecords {
    templates: BTreeMap<u16, Vec<Field>>,
    /// Whether lengths are random, and with them how many records fit.
    lengths_are_random: bool,
    counts_are_random: bool,
    /// Whether a message of TDL has a random value.
    has_random_enumeration: bool,
}

impl FlowRecords {
    /// Reads the generators of all clients of a scenario.
    pub(crate) fn of(scenario: &Value) -> FlowRecords {
        let mut records = FlowRecords::default();
        let clients = scenario["setup"]["namespaces"][0]["clients"].as_array();
        let plugins = clients.into_iter().flatten();
        let plugins = plugins.flat_map(|client| client["plugins"].as_array().cloned());
        for plugin in plugins.flatten() {
            let engines = plugin["init"]["engines"].as_array();
            let is_random = engines.is_some_and(|engines| engines.iter().any(is_random));
            records.has_random_enumeration |= plugin["plugin"] == "tdl" && is_random;
            let generators = plugin["init"]["generators"].as_array().cloned();
            for generator in generators.unwrap_or_default() {
                records.add(&generator);
            }
        }
        records
    }

    /// Whether so many bytes of packets cannot be compared.
    pub(crate) fn has_random_lengths(&self) -> bool {
        self.lengths_are_random
    }

    fn add(&mut self, generator: &Value) {
        let Some(id) = generator["template_id"].as_u64() else {
            return;
        };
        let engines = generator["engines"].as_array().cloned().unwrap_or_default();
        let fields = generator["fields"].as_array().cloned().unwrap_or_default();
        let field = |field: &Value| Field {
            bytes: field["length"]
                .as_u64()
                .filter(|bytes| *bytes != VARIABLE)
                .map(|bytes| bytes as usize),
            random: engines
                .iter()
                .filter(|engine| engine["engine_name"] == field["name"] && is_random(engine))
                .map(|engine| {
                    let number = |name: &str| engine["params"][name].as_u64().unwrap_or(0) as usize;
                    (number("offset"), number("offset") + number("size"))
                })
                .collect(),
        };
        let fields: Vec<Field> = fields.iter().map(field).collect();
        let is_variable = fields.iter().any(|field| field.bytes.is_none());
        self.lengths_are_random |= is_variable;
        self.counts_are_random |= is_variable && generator["data_records_num"] == 0;
        self.templates.insert(id as u16, fields);
    }

    /// The frame without what is random.
    pub(crate) fn masked(&self, frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        if self.has_random_enumeration && frame.len() > ENUMERATION.end {
            frame[ENUMERATION].fill(0);
            frame[PAYLOAD - 2..PAYLOAD].fill(0);
        }
        let version = frame.get(PAYLOAD..PAYLOAD + 2);
        let header = match version {
            Some([0, 9]) => 20,
            Some([0, 10]) => 16,
            _ => return frame,
        };
        if self.templates.is_empty() || frame.len() < PAYLOAD + header + 4 {
            return frame;
        }
        let set = PAYLOAD + header;
        let times = match header {
            20 => PAYLOAD + 4..PAYLOAD + 12,
            _ => PAYLOAD + 4..PAYLOAD + 8,
        };
        frame[times].fill(0);
        frame[PAYLOAD - 2..PAYLOAD].fill(0);
        if self.counts_are_random {
            frame[set - 8..set - 4].fill(0);
        }
        let id = u16::from_be_bytes([frame[set], frame[set + 1]]);
        let Some(fields) = self.templates.get(&id) else {
            return frame;
        };
        if self.lengths_are_random {
            for at in [16, 24, PAYLOAD - 4, PAYLOAD + 2, set + 2] {
                frame[at..at + 2].fill(0);
            }
        }
        let mut masked = frame[..set + 4].to_vec();
        let mut rest = &frame[set + 4..];
        while !rest.is_empty() {
            for field in fields {
                rest = take(field, rest, &mut masked);
            }
            if self.counts_are_random {
                break;
            }
        }
        masked
    }
}

/// Takes a field off a record, without what is random.
fn take<'r>(field: &Field, record: &'r [u8], masked: &mut Vec<u8>) -> &'r [u8] {
    let Some(bytes) = field.bytes else {
        let (prefix, bytes) = match record {
            [255, high, low, ..] => (3, u16::from_be_bytes([*high, *low]).into()),
            [short, ..] => (1, usize::from(*short)),
            [] => (0, 0),
        };
        return record.get(prefix + bytes..).expect("a record is whole");
    };
    let (own, rest) = record.split_at_checked(bytes).expect("a record is whole");
    let mut own = own.to_vec();
    for &(from, to) in &field.random {
        if to <= own.len() {
            own[from..to].fill(0);
        }
    }
    masked.extend(own);
    rest
}

fn is_random(engine: &Value) -> bool {
    let kind = engine["engine_type"].as_str().unwrap_or_default();
    let draws = ["histogram", "time_", "float"];
    engine["params"]["op"] == "rand" || draws.iter().any(|start| kind.starts_with(start))
}
