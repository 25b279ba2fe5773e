//! Packets of IPFIX and NetFlow 9 without what cannot be equal: times, and fields whose engines draw at
//! random. What such an engine drew is kept, and must be one of the values that it may draw.

use std::collections::{BTreeMap, BTreeSet};

use allosaur_packet::frame::{Layout, Network, Transport, parse};
use serde_json::Value;

const UDP_BYTES: usize = 8;
const VARIABLE: u64 = 0xffff;
/// Where the only random value of a message of TDL in the recordings is.
const ENUMERATION: std::ops::Range<usize> = 58..62;

/// An engine that draws at random: which bytes of its field it writes, and what it is.
struct Engine {
    from: usize,
    to: usize,
    given: Value,
}

/// A field: its length, if it is fixed, and what draws at random in it.
struct Field {
    bytes: Option<usize>,
    random: Vec<Engine>,
}

/// What the engines of a capture drew, by template, field and engine.
#[derive(Default)]
pub(crate) struct Drawn(BTreeMap<(u16, usize, usize), BTreeSet<Vec<u8>>>);

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
        let clients = scenario["setup"]["namespaces"][0]["clients"].as_array();
        let plugins = clients.into_iter().flatten();
        let plugins = plugins.flat_map(|client| client["plugins"].as_array().cloned());
        let plugins = plugins.flatten();
        FlowRecords::of_plugins(plugins.map(|plugin| {
            let name = plugin["plugin"].as_str().unwrap_or_default();
            (name.to_owned(), plugin["init"].clone())
        }))
    }

    /// The same of plugins, each a name and its init JSON.
    pub(crate) fn of_plugins(plugins: impl Iterator<Item = (String, Value)>) -> FlowRecords {
        let mut records = FlowRecords::default();
        for (name, init) in plugins {
            let engines = init["engines"].as_array();
            let is_random = engines.is_some_and(|engines| engines.iter().any(is_random));
            records.has_random_enumeration |= name == "tdl" && is_random;
            for generator in init["generators"].as_array().into_iter().flatten() {
                records.add(generator);
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
                    Engine {
                        from: number("offset"),
                        to: number("offset") + number("size"),
                        given: engine.clone(),
                    }
                })
                .collect(),
        };
        let fields: Vec<Field> = fields.iter().map(field).collect();
        let is_variable = fields.iter().any(|field| field.bytes.is_none());
        self.lengths_are_random |= is_variable;
        self.counts_are_random |= is_variable && generator["data_records_num"] == 0;
        self.templates.insert(id as u16, fields);
    }

    /// The frame, over either family and with any tags, without what is random.
    pub(crate) fn masked(&self, frame: &[u8], drawn: &mut Drawn) -> Vec<u8> {
        let layout = parse(frame);
        let mut frame = frame.to_vec();
        if layout.transport != Transport::Udp {
            return frame;
        }
        let udp = usize::from(layout.transport_offset);
        let payload = udp + UDP_BYTES;
        if self.has_random_enumeration && frame.len() > payload + ENUMERATION.end {
            frame[payload + ENUMERATION.start..payload + ENUMERATION.end].fill(0);
            frame[payload - 2..payload].fill(0);
        }
        let header = match frame.get(payload..payload + 2) {
            Some([0, 9]) => 20,
            Some([0, 10]) => 16,
            _ => return frame,
        };
        if self.templates.is_empty() || frame.len() < payload + header + 4 {
            return frame;
        }
        let set = payload + header;
        let times = match header {
            20 => payload + 4..payload + 12,
            _ => payload + 4..payload + 8,
        };
        frame[times].fill(0);
        frame[payload - 2..payload].fill(0);
        if self.counts_are_random {
            frame[set - 8..set - 4].fill(0);
        }
        let id = u16::from_be_bytes([frame[set], frame[set + 1]]);
        let Some(fields) = self.templates.get(&id) else {
            return frame;
        };
        if self.lengths_are_random {
            for at in lengths(&layout).into_iter().chain([payload + 2, set + 2]) {
                frame[at..at + 2].fill(0);
            }
        }
        let mut masked = frame[..set + 4].to_vec();
        let mut rest = &frame[set + 4..];
        while !rest.is_empty() {
            let is_compared = !self.counts_are_random || masked.len() == set + 4;
            for (place, field) in fields.iter().enumerate() {
                let (own, behind) = field.split(rest);
                rest = behind;
                let mut own = own.to_vec();
                for (number, engine) in field.random.iter().enumerate() {
                    let place_of = match field.bytes {
                        Some(_) => engine.from..engine.to,
                        None => 0..own.len(),
                    };
                    // As there, an engine that would write past its field writes nothing.
                    let Some(bytes) = own.get_mut(place_of) else {
                        continue;
                    };
                    let values = drawn.0.entry((id, place, number)).or_default();
                    values.insert(bytes.to_vec());
                    bytes.fill(0);
                }
                if field.bytes.is_some() && is_compared {
                    masked.extend(own);
                }
            }
        }
        masked
    }

    /// What was drawn that cannot be, of ours and of theirs, or what was drawn of one and never of the
    /// other, though there are few values.
    pub(crate) fn compare(&self, ours: &Drawn, theirs: &Drawn) -> Vec<String> {
        let mut wrong = Vec::new();
        for (&(id, place, number), theirs) in &theirs.0 {
            let engine = &self.templates[&id][place].random[number].given;
            let none = BTreeSet::new();
            let ours = ours.0.get(&(id, place, number)).unwrap_or(&none);
            for value in ours.iter().chain(theirs) {
                if !is_possible(engine, value) {
                    wrong.push(format!("template {id}: {value:02x?} is not of {engine}"));
                }
            }
            // An engine that draws draws more than one value, if theirs did.
            if theirs.len() > 2 && ours.len() < 2 {
                wrong.push(format!("template {id}: only {ours:02x?} of {engine}"));
            }
        }
        wrong
    }
}

/// Where the lengths of a datagram are, and the checksum of the header that has one of them.
fn lengths(layout: &Layout) -> Vec<usize> {
    let network = usize::from(layout.network_offset);
    let udp = usize::from(layout.transport_offset);
    match layout.network {
        Network::Ipv4 => vec![network + 2, network + 10, udp + 4],
        _ => vec![network + 4, udp + 4],
    }
}

impl Field {
    /// Its bytes, and what is behind it.
    fn split<'r>(&self, record: &'r [u8]) -> (&'r [u8], &'r [u8]) {
        let (prefix, bytes) = match (self.bytes, record) {
            (Some(bytes), _) => (0, bytes),
            (None, [255, high, low, ..]) => (3, u16::from_be_bytes([*high, *low]).into()),
            (None, [short, ..]) => (1, usize::from(*short)),
            (None, []) => (0, 0),
        };
        let record = record.get(prefix..).expect("a record is whole");
        record.split_at_checked(bytes).expect("a record is whole")
    }
}

fn is_random(engine: &Value) -> bool {
    let kind = engine["engine_type"].as_str().unwrap_or_default();
    let draws = ["histogram", "time_", "float"];
    engine["params"]["op"] == "rand" || draws.iter().any(|start| kind.starts_with(start))
}

/// Whether an engine may draw a value.
fn is_possible(engine: &Value, value: &[u8]) -> bool {
    let params = &engine["params"];
    let kind = engine["engine_type"].as_str().unwrap_or_default();
    let bits = 64 - 8 * value.len().min(8) as u32;
    let number = value
        .iter()
        .fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    // Negative numbers are as long as the field.
    let is_it = |given: &Value| {
        let given = given.as_u64().or(given.as_i64().map(|given| given as u64));
        given.is_some_and(|given| given << bits >> bits == number)
    };
    let text = String::from_utf8_lossy(value);
    // A text is padded by what its entry says, or by zeros.
    let is_text = |given: &Value, padding: &Value| {
        let padding = padding.as_u64().unwrap_or(0) as u8;
        let rest = given
            .as_str()
            .and_then(|given| value.strip_prefix(given.as_bytes()));
        rest.is_some_and(|rest| rest.iter().all(|byte| *byte == padding))
    };
    let in_range = |range: &Value| {
        let [min, max] = ["min", "max"].map(|name| range[name].as_u64());
        min.unwrap_or(0) <= number && max.is_none_or(|max| number <= max)
    };
    let any = |list: &Value, is_it: &dyn Fn(&Value) -> bool| {
        list.as_array().is_some_and(|list| list.iter().any(is_it))
    };
    let entries = &params["entries"];
    match kind {
        "uint" => in_range(params),
        "uint_list" | "int_list" => any(&params["list"], &is_it),
        "string_list" => any(&params["list"], &|one| {
            is_text(one, &params["padding_value"])
        }),
        "histogram_string" => any(entries, &|entry| {
            is_text(&entry["str"], &entry["padding_value"])
        }),
        "histogram_url" => any(entries, &|entry| is_url(entry, text.trim_end_matches('\0'))),
        _ if kind.ends_with("_range") => any(entries, &in_range),
        _ if kind.ends_with("_list") => any(entries, &|entry| any(&entry["list"], &is_it)),
        _ if kind.starts_with("histogram_") => any(entries, &|entry| is_it(&entry["v"])),
        // Times and fractions are anything.
        _ => true,
    }
}

/// Whether a text is an address that an entry makes.
fn is_url(entry: &Value, text: &str) -> bool {
    let has = |name: &str, wanted: &str| {
        let list = entry[name].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).any(|one| one == wanted)
    };
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    has("schemes", scheme) && has("hosts", host)
}
