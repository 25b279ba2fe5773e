//! Lists of values: encoded once, given in order or at random.

use super::params::{EngineError, Operation, Params, bits_of, wrong};
use super::range::float_bits;
use super::{Random, put_bits};

/// Values of one size, as bytes one after the other.
#[derive(Clone, Debug)]
pub(super) struct List {
    bytes: Box<[u8]>,
    size: usize,
    at: usize,
    step: usize,
    operation: Operation,
}

impl List {
    fn new(params: &Params<'_>, bytes: Vec<u8>, size: u16) -> Result<List, EngineError> {
        let size = usize::from(size);
        let count = bytes.len() / size;
        if count == 0 {
            return Err(EngineError::new("List can't be empty."));
        }
        let operation = params.operation()?;
        let index = params.u64("init_index")?.unwrap_or(0);
        let at = usize::try_from(index).ok().filter(|at| *at < count);
        let at = at.ok_or_else(|| {
            EngineError::new(format!(
                "init_index {index} must be smaller than the {count} items of the list."
            ))
        })?;
        let step = params.u64("step")?.filter(|step| *step != 0).unwrap_or(1);
        Ok(List {
            bytes: bytes.into(),
            size,
            at,
            step: usize::try_from(step % count as u64).unwrap_or(0),
            operation,
        })
    }

    pub(super) fn next(&mut self, random: &mut impl Random) -> &[u8] {
        let current = self.at * self.size;
        let count = self.bytes.len() / self.size;
        self.at = match self.operation {
            Operation::Increment => (self.at + self.step) % count,
            Operation::Decrement => (self.at + count - self.step) % count,
            Operation::Random => usize::try_from(random.below(count as u64)).unwrap_or(0),
        };
        &self.bytes[current..current + self.size]
    }
}

/// A list of integers.
pub(super) fn integers(params: &Params<'_>, signed: bool) -> Result<List, EngineError> {
    let size = params.size_of(&[1, 2, 4, 8])?;
    let mut bytes = Vec::new();
    for value in params.list("list")? {
        push_bits(&mut bytes, bits_of(value, size, signed)?, size);
    }
    List::new(params, bytes, size)
}

/// A list of floats.
pub(super) fn floats(params: &Params<'_>) -> Result<List, EngineError> {
    let size = params.size_of(&[4, 8])?;
    let mut bytes = Vec::new();
    for value in params.list("list")? {
        let number = value
            .as_f64()
            .ok_or_else(|| wrong("list", "a list of numbers"))?;
        let bits = float_bits(number, size).ok_or_else(|| {
            EngineError::new(format!(
                "List value {value} cannot be represented with size {size}."
            ))
        })?;
        push_bits(&mut bytes, bits, size);
    }
    List::new(params, bytes, size)
}

/// A list of strings, padded to the size.
pub(super) fn strings(params: &Params<'_>) -> Result<List, EngineError> {
    let (size, padding) = (params.size()?, params.padding()?);
    let mut bytes = Vec::new();
    for text in params.texts("list")? {
        push_padded(&mut bytes, text, size, padding)?;
    }
    List::new(params, bytes, size)
}

/// Appends `size` bytes: the text and padding.
pub(super) fn push_padded(
    bytes: &mut Vec<u8>,
    text: &str,
    size: u16,
    padding: u8,
) -> Result<(), EngineError> {
    if text.len() > usize::from(size) {
        return Err(EngineError::new(format!(
            "String {text} is longer than size {size}."
        )));
    }
    let end = bytes.len() + usize::from(size);
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(end, padding);
    Ok(())
}

/// Appends the low `size` bytes.
pub(super) fn push_bits(bytes: &mut Vec<u8>, bits: u64, size: u16) {
    let start = bytes.len();
    bytes.resize(start + usize::from(size), 0);
    put_bits(&mut bytes[start..], bits);
}
