//! Histograms: entries drawn by their weight, then a value within the entry.

use super::list::{push_bits, push_padded};
use super::params::{EngineError, Params, bits_of, fits, wrong};
use super::url::Url;
use super::{Random, put_bits};

/// What an entry gives.
#[derive(Clone, Debug)]
enum Entry {
    /// One of several values of the engine's size.
    List(Box<[u8]>),
    /// An integer from `base` to `base + last`.
    Range { base: u64, last: u64 },
    /// A text as it is.
    Text(Box<[u8]>),
    /// A URL.
    Url(Box<Url>),
}

/// Entries and where the weight of each ends.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    entries: Vec<Entry>,
    ends: Vec<u32>,
}

impl Histogram {
    /// Reads `entries`, each by `read`, and their weights. An entry has what is `known`, beside its
    /// weight.
    fn parse(
        params: &Params<'_>,
        known: &[&str],
        read: impl Fn(usize, &Params<'_>) -> Result<Entry, EngineError>,
    ) -> Result<Histogram, EngineError> {
        let list = params.list("entries")?;
        if list.is_empty() {
            return Err(EngineError::new("Entries list can't be empty."));
        }
        let mut histogram = Histogram {
            entries: Vec::new(),
            ends: Vec::new(),
        };
        let mut sum = 0_u32;
        for (index, value) in list.iter().enumerate() {
            let entry = Params::new(value).map_err(|_| wrong("entries", "a list of objects"))?;
            entry.only(&format!("entries[{index}]"), &[known, &["prob"]].concat())?;
            histogram.entries.push(read(index, &entry)?);
            let weight = entry.u64("prob")?.unwrap_or(0);
            sum = u32::try_from(weight)
                .ok()
                .and_then(|weight| sum.checked_add(weight))
                .ok_or_else(|| {
                    EngineError::new(format!(
                        "The distributions sum to more than MaxUint32 ({index}), can't scale them."
                    ))
                })?;
            histogram.ends.push(sum);
        }
        if sum == 0 {
            return Err(EngineError::new(
                "The distributions sum to zero; give prob to an entry.",
            ));
        }
        Ok(histogram)
    }

    pub(super) fn next(&self, random: &mut impl Random, out: &mut [u8]) -> usize {
        out.fill(0);
        let total = self.ends.last().copied().unwrap_or(1);
        let drawn = random.below(u64::from(total));
        let index = self.ends.partition_point(|end| u64::from(*end) <= drawn);
        match &self.entries[index] {
            Entry::List(bytes) => {
                let size = out.len();
                let count = (bytes.len() / size) as u64;
                let at = usize::try_from(random.below(count)).unwrap_or(0) * size;
                out.copy_from_slice(&bytes[at..at + size]);
            }
            Entry::Range { base, last } => {
                let offset = match last.checked_add(1) {
                    Some(count) => random.below(count),
                    None => random.next_u64(),
                };
                put_bits(out, base.wrapping_add(offset));
            }
            Entry::Text(text) => {
                out[..text.len()].copy_from_slice(text);
                return text.len();
            }
            Entry::Url(url) => return url.write(random, out),
        }
        out.len()
    }
}

/// The numbers of a histogram: sign, width, and how entries say them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers<'a> {
    signed: bool,
    wide: bool,
    /// "", "_range" or "_list".
    form: &'a str,
}

impl Numbers<'_> {
    /// What a name such as `histogram_uint64_range` stands for.
    pub(super) fn of_type(engine_type: &str) -> Option<Numbers<'_>> {
        let rest = engine_type.strip_prefix("histogram_")?;
        let (signed, rest) = match rest.strip_prefix("uint") {
            Some(rest) => (false, rest),
            None => (true, rest.strip_prefix("int")?),
        };
        let (wide, form) = match rest.strip_prefix("64") {
            Some(form) => (true, form),
            None => (false, rest),
        };
        matches!(form, "" | "_range" | "_list").then_some(Numbers { signed, wide, form })
    }
}

/// A histogram of numbers.
pub(super) fn numbers(params: &Params<'_>, numbers: Numbers<'_>) -> Result<Histogram, EngineError> {
    let size = params.size_of(if numbers.wide { &[8] } else { &[1, 2, 4] })?;
    let Numbers { signed, form, .. } = numbers;
    let known: &[&str] = match form {
        "" => &["v"],
        "_range" => &["min", "max"],
        _ => &["list"],
    };
    Histogram::parse(params, known, |index, entry| match form {
        "" => value(entry, size, signed),
        "_range" => range(entry, size, signed, index),
        _ => list(entry, size, signed),
    })
}

fn value(entry: &Params<'_>, size: u16, signed: bool) -> Result<Entry, EngineError> {
    let bits = number(entry, "v", signed)?;
    if !fits(bits, size, signed) {
        return Err(unrepresentable("Value", bits, size, signed));
    }
    let mut bytes = Vec::new();
    push_bits(&mut bytes, bits, size);
    Ok(Entry::List(bytes.into()))
}

fn range(entry: &Params<'_>, size: u16, signed: bool, index: usize) -> Result<Entry, EngineError> {
    let (min, max) = (number(entry, "min", signed)?, number(entry, "max", signed)?);
    let above = if signed {
        (min as i64) > (max as i64)
    } else {
        min > max
    };
    if above {
        return Err(EngineError::new(format!(
            "Min {} bigger than max {} in entry #{index}.",
            text(min, signed),
            text(max, signed)
        )));
    }
    for (name, bits) in [("Max", max), ("Min", min)] {
        if !fits(bits, size, signed) {
            return Err(unrepresentable(name, bits, size, signed));
        }
    }
    Ok(Entry::Range {
        base: min,
        last: max.wrapping_sub(min),
    })
}

fn list(entry: &Params<'_>, size: u16, signed: bool) -> Result<Entry, EngineError> {
    let mut bytes = Vec::new();
    for value in entry.list("list")? {
        push_bits(&mut bytes, bits_of(value, size, signed)?, size);
    }
    if bytes.is_empty() {
        return Err(EngineError::new("List can't be empty."));
    }
    Ok(Entry::List(bytes.into()))
}

/// A number of an entry, 0 when it is missing, as bits.
fn number(entry: &Params<'_>, name: &str, signed: bool) -> Result<u64, EngineError> {
    Ok(if signed {
        entry.i64(name)?.unwrap_or(0) as u64
    } else {
        entry.u64(name)?.unwrap_or(0)
    })
}

fn text(bits: u64, signed: bool) -> String {
    if signed {
        (bits as i64).to_string()
    } else {
        bits.to_string()
    }
}

fn unrepresentable(name: &str, bits: u64, size: u16, signed: bool) -> EngineError {
    let value = text(bits, signed);
    EngineError::new(format!(
        "{name} {value} can't be represented with {size} bytes."
    ))
}

/// A histogram of URLs.
pub(super) fn urls(params: &Params<'_>) -> Result<Histogram, EngineError> {
    let size = params.size()?;
    let known = ["schemes", "hosts", "paths", "queries", "random_queries"];
    Histogram::parse(params, &known, |_, entry| {
        Ok(Entry::Url(Box::new(Url::parse(entry, size)?)))
    })
}

/// A histogram of strings, padded to the size unless `should_pad` is false.
pub(super) fn strings(params: &Params<'_>) -> Result<Histogram, EngineError> {
    let size = params.size()?;
    let pad = params.flag("should_pad")?.unwrap_or(false);
    Histogram::parse(params, &["str", "padding_value"], |_, entry| {
        let text = entry.text("str")?.unwrap_or_default();
        let mut bytes = Vec::new();
        push_padded(&mut bytes, text, size, entry.padding()?)?;
        if !pad {
            bytes.truncate(text.len());
        }
        Ok(Entry::Text(bytes.into()))
    })
}
