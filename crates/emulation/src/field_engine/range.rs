//! Numbers between two limits: integers in order or at random, floats at random.

use super::Random;
use super::params::{EngineError, Operation, Params, fits};

/// Integers of a range. Both signed and unsigned ones are `base` plus a distance, modulo 2⁶⁴.
#[derive(Clone, Debug)]
pub(super) struct Range {
    base: u64,
    /// The distance of the largest value.
    last: u64,
    at: u64,
    step: u64,
    operation: Operation,
    repeat: u64,
    /// How often the current value has been given.
    given: u64,
}

impl Range {
    pub(super) fn parse(params: &Params<'_>, signed: bool) -> Result<Range, EngineError> {
        let operation = params.operation()?;
        let size = params.size_of(&[1, 2, 4, 8])?;
        let (min, max, init) = if signed {
            signed_limits(params)?
        } else {
            limits(params)?
        };
        let number = |bits: u64| -> i128 {
            if signed {
                i128::from(bits as i64)
            } else {
                i128::from(bits)
            }
        };
        if number(min) > number(max) {
            return Err(EngineError::new(format!(
                "Min value {} is bigger than max value {}.",
                number(min),
                number(max)
            )));
        }
        for (name, bits) in [("Min", min), ("Max", max)] {
            if !fits(bits, size, signed) {
                return Err(EngineError::new(format!(
                    "{name} value {} cannot be represented with size {size}.",
                    number(bits)
                )));
            }
        }
        if number(init) < number(min) || number(init) > number(max) {
            return Err(EngineError::new(format!(
                "Init value {} must be between [{} - {}].",
                number(init),
                number(min),
                number(max)
            )));
        }
        Ok(Range {
            base: min,
            last: max.wrapping_sub(min),
            at: init.wrapping_sub(min),
            step: params.u64("step")?.filter(|step| *step != 0).unwrap_or(1),
            operation,
            repeat: params.u64("repeat")?.unwrap_or(1).max(1),
            given: 0,
        })
    }

    pub(super) fn next(&mut self, random: &mut impl Random) -> u64 {
        let value = self.base.wrapping_add(self.at);
        self.given += 1;
        if self.given >= self.repeat {
            self.given = 0;
            self.at = self.following(random);
        }
        value
    }

    fn following(&self, random: &mut impl Random) -> u64 {
        let Some(count) = self.last.checked_add(1) else {
            // All 2⁶⁴ values: arithmetic wraps by itself.
            return match self.operation {
                Operation::Increment => self.at.wrapping_add(self.step),
                Operation::Decrement => self.at.wrapping_sub(self.step),
                Operation::Random => random.next_u64(),
            };
        };
        match self.operation {
            Operation::Increment => add_modulo(self.at, self.step % count, count),
            Operation::Decrement => add_modulo(self.at, count - self.step % count, count),
            Operation::Random => random.below(count),
        }
    }
}

/// `(a + b) % count`, whose sum may need 65 bits.
fn add_modulo(a: u64, b: u64, count: u64) -> u64 {
    let sum = (u128::from(a) + u128::from(b)) % u128::from(count);
    u64::try_from(sum).unwrap_or(0)
}

/// `min`, `max` and `init` of unsigned integers; an `init` of 0 is `min`, as in the reference.
fn limits(params: &Params<'_>) -> Result<(u64, u64, u64), EngineError> {
    let min = params.u64("min")?.unwrap_or(0);
    let max = required(params.u64("max")?, "max")?;
    let init = params.u64("init")?.filter(|init| *init != 0).unwrap_or(min);
    Ok((min, max, init))
}

/// The same of signed integers, as bits.
fn signed_limits(params: &Params<'_>) -> Result<(u64, u64, u64), EngineError> {
    let min = required(params.i64("min")?, "min")?;
    let max = required(params.i64("max")?, "max")?;
    let init = params.i64("init")?.unwrap_or(min);
    Ok((min as u64, max as u64, init as u64))
}

fn required<T>(value: Option<T>, name: &str) -> Result<T, EngineError> {
    value.ok_or_else(|| EngineError::new(format!("{name} is missing; give the limit of the range")))
}

/// Floating-point numbers, uniform between two limits.
#[derive(Clone, Debug)]
pub(super) struct Float {
    min: f64,
    max: f64,
}

impl Float {
    pub(super) fn parse(params: &Params<'_>) -> Result<Float, EngineError> {
        let size = params.size_of(&[4, 8])?;
        let min = required(params.f64("min")?, "min")?;
        let max = required(params.f64("max")?, "max")?;
        if min > max {
            return Err(EngineError::new(format!(
                "Min value {min} is bigger than max value {max}."
            )));
        }
        for (name, value) in [("Min", min), ("Max", max)] {
            if float_bits(value, size).is_none() {
                return Err(EngineError::new(format!(
                    "{name} value {value} cannot be represented with size {size}."
                )));
            }
        }
        Ok(Float { min, max })
    }

    pub(super) fn next(&mut self, random: &mut impl Random, size: u16) -> u64 {
        // 53 random bits, all that a float of 64 bits has room for.
        let unit = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        // Not `min + unit · (max - min)`: the difference of finite limits may be infinite.
        let value = self.min * (1.0 - unit) + self.max * unit;
        float_bits(value.clamp(self.min, self.max), size).unwrap_or(0)
    }
}

/// The bits of a float of 4 or 8 bytes, unless it is too large for them.
pub(super) fn float_bits(value: f64, size: u16) -> Option<u64> {
    if size == 8 {
        return Some(value.to_bits());
    }
    let short = value as f32;
    short.is_finite().then(|| u64::from(short.to_bits()))
}
