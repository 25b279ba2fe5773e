//! Field engines of records: what gives a field of an exported record its next value.
//!
//! A list of engines is read from JSON ([`FieldEngines::parse`]); each owns one field, or a part
//! of one, and [`FieldEngines::next`] writes its current value, big endian, and moves on. Times of
//! start and end come in pairs that know each other by name.

mod histogram;
mod interval;
mod list;
mod params;
mod random;
mod range;
#[cfg(test)]
mod tests;
mod url;

use interval::Interval;
pub use params::EngineError;
use params::Params;
pub use random::SplitMix;
use serde_json::Value;

/// Most engines of one list: a record has no more fields than that in a packet of 1,500 bytes.
const ENGINES_MAX: usize = 512;

/// Random numbers for engines: 64 independent bits a draw.
pub trait Random {
    /// The next draw.
    fn next_u64(&mut self) -> u64;

    /// A number below `bound`, or 0 when `bound` is 0. The bias is below 2⁻³² for bounds of 32
    /// bits, which is less than any test of a network can see.
    fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }
}

/// What an engine does for each record.
#[derive(Clone, Debug)]
enum Kind {
    /// Integers in order or at random.
    Range(range::Range),
    /// Floating-point numbers at random.
    Float(range::Float),
    /// The items of a list, in order or at random.
    List(list::List),
    /// Entries by their weight.
    Histogram(histogram::Histogram),
    /// The start of the interval with this index.
    Start(usize),
    /// The end of it.
    End(usize),
}

/// One engine: a place within a field, and the values that go there.
#[derive(Clone, Debug)]
struct Engine {
    name: String,
    offset: u16,
    size: u16,
    kind: Kind,
}

/// The engines of one record, in the order of their list.
#[derive(Clone, Debug, Default)]
pub struct FieldEngines {
    engines: Vec<Engine>,
    intervals: Vec<Interval>,
}

impl FieldEngines {
    /// Reads a JSON list of `{engine_name, engine_type, params}`.
    pub fn parse(value: &Value) -> Result<FieldEngines, EngineError> {
        let list = match value {
            Value::Null => return Ok(FieldEngines::default()),
            Value::Array(list) => list,
            _ => return Err(EngineError::new("engines must be a list of objects")),
        };
        if list.len() > ENGINES_MAX {
            return Err(EngineError::new(format!(
                "{} engines are more than {ENGINES_MAX}; leave some out",
                list.len()
            )));
        }
        let mut engines = FieldEngines::default();
        let mut pairs = interval::Pairs::default();
        for item in list {
            let name = item["engine_name"].as_str().unwrap_or_default();
            let engine = engines
                .read(name, item, &mut pairs)
                .map_err(|error| error.within(&format!("could not create engine '{name}'")))?;
            engines.engines.push(engine);
        }
        pairs.finish()?;
        Ok(engines)
    }

    /// How many engines there are.
    pub fn len(&self) -> usize {
        self.engines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.engines.is_empty()
    }

    /// The name of an engine: that of its field.
    pub fn name(&self, engine: usize) -> &str {
        &self.engines[engine].name
    }

    /// Where within its field an engine writes, and at most how many bytes.
    pub fn place(&self, engine: usize) -> (usize, usize) {
        let engine = &self.engines[engine];
        (usize::from(engine.offset), usize::from(engine.size))
    }

    /// Writes the current value of an engine at the beginning of `out`, which holds at least its
    /// size, moves the engine on, and says how many bytes the value has.
    pub fn next(&mut self, engine: usize, random: &mut impl Random, out: &mut [u8]) -> usize {
        let FieldEngines { engines, intervals } = self;
        let engine = &mut engines[engine];
        let out = &mut out[..usize::from(engine.size)];
        match &mut engine.kind {
            Kind::Range(range) => put_bits(out, range.next(random)),
            Kind::Float(float) => put_bits(out, float.next(random, engine.size)),
            Kind::List(list) => out.copy_from_slice(list.next(random)),
            Kind::Histogram(histogram) => return histogram.next(random, out),
            Kind::Start(pair) => put_bits(out, intervals[*pair].start(random)),
            Kind::End(pair) => put_bits(out, intervals[*pair].end(random)),
        }
        out.len()
    }

    /// Runs every engine once over one buffer that has all fields.
    pub fn update(
        &mut self,
        random: &mut impl Random,
        buffer: &mut [u8],
    ) -> Result<(), EngineError> {
        for engine in 0..self.engines.len() {
            let (offset, size) = self.place(engine);
            match buffer.get_mut(offset..offset + size) {
                Some(place) => self.next(engine, random, place),
                None => {
                    return Err(EngineError::new(format!(
                        "engine '{}' writes {size} bytes at {offset}, past the end of {} bytes",
                        self.name(engine),
                        buffer.len()
                    )));
                }
            };
        }
        Ok(())
    }

    fn read(
        &mut self,
        name: &str,
        item: &Value,
        pairs: &mut interval::Pairs,
    ) -> Result<Engine, EngineError> {
        let engine_type = item["engine_type"].as_str().unwrap_or_default();
        let params = Params::new(&item["params"])?;
        if let Some(known) = known_params(engine_type) {
            let item = Params::new(item)?;
            item.only("an engine", &["engine_name", "engine_type", "params"])?;
            params.only("params", &[known, &["size", "offset"]].concat())?;
        }
        let kind = match engine_type {
            "uint" | "int" => Kind::Range(range::Range::parse(&params, engine_type == "int")?),
            "float" => Kind::Float(range::Float::parse(&params)?),
            "uint_list" => Kind::List(list::integers(&params, false)?),
            "int_list" => Kind::List(list::integers(&params, true)?),
            "float_list" => Kind::List(list::floats(&params)?),
            "string_list" => Kind::List(list::strings(&params)?),
            "histogram_url" => Kind::Histogram(histogram::urls(&params)?),
            "histogram_string" => Kind::Histogram(histogram::strings(&params)?),
            "time_start" | "time_end" => {
                let (half, other) = interval::Half::parse(&params, engine_type == "time_start")?;
                let pair = pairs.join(&mut self.intervals, name, &other, &half)?;
                match half {
                    interval::Half::Start { .. } => Kind::Start(pair),
                    interval::Half::End { .. } => Kind::End(pair),
                }
            }
            _ => match histogram::Numbers::of_type(engine_type) {
                Some(numbers) => Kind::Histogram(histogram::numbers(&params, numbers)?),
                None => {
                    return Err(EngineError::new(format!(
                        "field engine {engine_type} is not registered."
                    )));
                }
            },
        };
        Ok(Engine {
            name: name.to_owned(),
            offset: params.u16("offset")?.unwrap_or(0),
            size: params.size()?,
            kind,
        })
    }
}

/// The parameters of a type of engines, beside its place; nothing for a type that is not there.
fn known_params(engine_type: &str) -> Option<&'static [&'static str]> {
    Some(match engine_type {
        "uint" | "int" => &["min", "max", "op", "step", "init", "repeat"],
        "float" => &["min", "max"],
        "uint_list" | "int_list" | "float_list" => &["list", "op", "step", "init_index"],
        // Examples of TRex say `padding`, which does nothing there either.
        "string_list" => &[
            "list",
            "op",
            "step",
            "init_index",
            "padding_value",
            "padding",
        ],
        "histogram_string" => &["entries", "should_pad"],
        "histogram_url" => &["entries"],
        "time_start" => &["time_offset", "ipg_min", "ipg_max", "time_end_engine_name"],
        "time_end" => &["duration_min", "duration_max", "time_start_engine_name"],
        _ => histogram::Numbers::of_type(engine_type).map(|_| &["entries"][..])?,
    })
}

/// Writes the low bytes of `bits`, big endian, over all of `out`.
fn put_bits(out: &mut [u8], bits: u64) {
    let bytes = bits.to_be_bytes();
    let size = out.len().min(bytes.len());
    out[..size].copy_from_slice(&bytes[bytes.len() - size..]);
}
