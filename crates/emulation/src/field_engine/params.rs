//! The parameters of an engine, read strictly: each error names the parameter.

use serde_json::Value;
use std::fmt;

use crate::params;

/// Why a list of engines is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError(String);

impl EngineError {
    pub(super) fn new(text: impl Into<String>) -> EngineError {
        EngineError(text.into())
    }

    pub(super) fn within(self, context: &str) -> EngineError {
        EngineError(format!("{context}: {}", self.0))
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for EngineError {}

/// How an engine goes from one value to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Increment,
    Decrement,
    Random,
}

/// An object of parameters.
pub(super) struct Params<'a>(&'a Value);

impl<'a> Params<'a> {
    pub(super) fn new(value: &'a Value) -> Result<Params<'a>, EngineError> {
        match value {
            Value::Object(_) => Ok(Params(value)),
            _ => Err(EngineError::new("params must be an object")),
        }
    }

    /// Refuses parameters that are not `known`; `place` is where the object stands.
    pub(super) fn only(&self, place: &str, known: &[&str]) -> Result<(), EngineError> {
        let only = params::Params::new(self.0).only_in(place, known);
        only.map_err(|error| EngineError(error.to_string()))
    }

    /// The bytes that an engine writes; missing or 0 is refused.
    pub(super) fn size(&self) -> Result<u16, EngineError> {
        match self.u16("size")? {
            None | Some(0) => Err(EngineError::new("size is missing; give the bytes to write")),
            Some(size) => Ok(size),
        }
    }

    /// The size, which must be one of `allowed`.
    pub(super) fn size_of(&self, allowed: &[u16]) -> Result<u16, EngineError> {
        let size = self.size()?;
        if allowed.contains(&size) {
            return Ok(size);
        }
        let allowed: Vec<String> = allowed.iter().map(u16::to_string).collect();
        Err(EngineError::new(format!(
            "Invalid size {size}. Size should be {{{}}}.",
            allowed.join(", ")
        )))
    }

    pub(super) fn operation(&self) -> Result<Operation, EngineError> {
        match self.text("op")?.unwrap_or_default() {
            "inc" => Ok(Operation::Increment),
            "dec" => Ok(Operation::Decrement),
            "rand" => Ok(Operation::Random),
            other => Err(EngineError::new(format!("Unsupported operation {other}."))),
        }
    }

    pub(super) fn u16(&self, name: &str) -> Result<Option<u16>, EngineError> {
        self.u64(name)?
            .map(|number| u16::try_from(number).map_err(|_| wrong(name, "a number up to 65535")))
            .transpose()
    }

    pub(super) fn u64(&self, name: &str) -> Result<Option<u64>, EngineError> {
        self.field(name)
            .map(|value| as_u64(value).ok_or_else(|| wrong(name, "an unsigned integer")))
            .transpose()
    }

    pub(super) fn i64(&self, name: &str) -> Result<Option<i64>, EngineError> {
        self.field(name)
            .map(|value| as_i64(value).ok_or_else(|| wrong(name, "an integer")))
            .transpose()
    }

    pub(super) fn f64(&self, name: &str) -> Result<Option<f64>, EngineError> {
        self.field(name)
            .map(|value| value.as_f64().ok_or_else(|| wrong(name, "a number")))
            .transpose()
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, EngineError> {
        self.field(name)
            .map(|value| value.as_bool().ok_or_else(|| wrong(name, "true or false")))
            .transpose()
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, EngineError> {
        self.field(name)
            .map(|value| value.as_str().ok_or_else(|| wrong(name, "a string")))
            .transpose()
    }

    /// A list; a missing one is empty.
    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], EngineError> {
        match self.field(name) {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(wrong(name, "a list")),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<&'a str>, EngineError> {
        let list = self.list(name)?.iter();
        list.map(|value| {
            value
                .as_str()
                .ok_or_else(|| wrong(name, "a list of strings"))
        })
        .collect()
    }

    /// The byte that fills what a string leaves free.
    pub(super) fn padding(&self) -> Result<u8, EngineError> {
        u8::try_from(self.u64("padding_value")?.unwrap_or(0))
            .map_err(|_| wrong("padding_value", "a number up to 255"))
    }

    fn field(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

/// The error of a parameter that is not what it must be.
pub(super) fn wrong(name: &str, what: &str) -> EngineError {
    EngineError::new(format!("{name} must be {what}"))
}

/// An unsigned integer, also written as a float without a fraction.
pub(super) fn as_u64(value: &Value) -> Option<u64> {
    value.as_u64()
}

/// A signed integer.
pub(super) fn as_i64(value: &Value) -> Option<i64> {
    value.as_i64()
}

/// An integer of a list as the bits of a value of `size` bytes, or its text when it does not fit.
pub(super) fn bits_of(value: &Value, size: u16, signed: bool) -> Result<u64, EngineError> {
    let bits = if signed {
        as_i64(value).map(|number| number as u64)
    } else {
        as_u64(value)
    };
    let bits = bits.ok_or_else(|| wrong("list", "a list of integers"))?;
    if fits(bits, size, signed) {
        Ok(bits)
    } else {
        Err(EngineError::new(format!(
            "List value {value} cannot be represented with size {size}."
        )))
    }
}

/// Whether `size` bytes hold the number with these bits.
pub(super) fn fits(bits: u64, size: u16, signed: bool) -> bool {
    if size >= 8 {
        return true;
    }
    let free = 64 - 8 * u32::from(size);
    if signed {
        let number = bits as i64;
        (number << free) >> free == number
    } else {
        bits.leading_zeros() >= free
    }
}
