//! Times of start and end of flows: two engines that share one interval.
//!
//! The first start is the offset; an end is its start and a random duration; the next start is the
//! last end and a random gap. Whichever engine of a pair is asked first begins the next interval.

use super::Random;
use super::params::{EngineError, Params};

/// A number drawn from `min` to `max`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    min: u64,
    last: u64,
}

impl Limits {
    fn parse(params: &Params<'_>, min: &str, max: &str) -> Result<Limits, EngineError> {
        let (low, high) = (required(params, min)?, required(params, max)?);
        if low > high {
            return Err(EngineError::new(format!(
                "{min} {low} is bigger than {max} {high}."
            )));
        }
        Ok(Limits {
            min: low,
            last: high - low,
        })
    }

    fn draw(self, random: &mut impl Random) -> u64 {
        match self.last.checked_add(1) {
            Some(count) => self.min + random.below(count),
            None => random.next_u64(),
        }
    }
}

fn required(params: &Params<'_>, name: &str) -> Result<u64, EngineError> {
    let value = params.u64(name)?;
    value.ok_or_else(|| EngineError::new(format!("{name} is missing; give milliseconds")))
}

/// What one engine says of its interval.
pub(super) enum Half {
    Start { offset: u64, gap: Limits },
    End { duration: Limits },
}

impl Half {
    /// Reads an engine and the name of the other one.
    pub(super) fn parse(params: &Params<'_>, start: bool) -> Result<(Half, String), EngineError> {
        params.size_of(&[4, 8])?;
        let (half, other) = if start {
            let half = Half::Start {
                offset: params.u64("time_offset")?.unwrap_or(0),
                gap: Limits::parse(params, "ipg_min", "ipg_max")?,
            };
            (half, "time_end_engine_name")
        } else {
            let duration = Limits::parse(params, "duration_min", "duration_max")?;
            (Half::End { duration }, "time_start_engine_name")
        };
        let name = params.text(other)?.unwrap_or_default();
        if name.is_empty() {
            return Err(EngineError::new(format!(
                "{other} is missing; name the engine of the other time"
            )));
        }
        Ok((half, name.to_owned()))
    }
}

/// The state of one pair.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    gap: Limits,
    duration: Limits,
    start_ms: u64,
    end_ms: u64,
    begun: bool,
    start_given: bool,
    end_given: bool,
}

impl Interval {
    const EMPTY: Interval = Interval {
        gap: Limits { min: 0, last: 0 },
        duration: Limits { min: 0, last: 0 },
        start_ms: 0,
        end_ms: 0,
        begun: false,
        start_given: true,
        end_given: true,
    };

    pub(super) fn start(&mut self, random: &mut impl Random) -> u64 {
        if self.start_given {
            self.begin(random);
        }
        self.start_given = true;
        self.start_ms
    }

    pub(super) fn end(&mut self, random: &mut impl Random) -> u64 {
        if self.end_given {
            self.begin(random);
        }
        self.end_given = true;
        self.end_ms
    }

    fn begin(&mut self, random: &mut impl Random) {
        if self.begun {
            self.start_ms = self.end_ms.wrapping_add(self.gap.draw(random));
        }
        self.begun = true;
        self.end_ms = self.start_ms.wrapping_add(self.duration.draw(random));
        self.start_given = false;
        self.end_given = false;
    }
}

/// Pairs while a list is read: names of the two engines, start first, and whether each was seen.
#[derive(Default)]
pub(super) struct Pairs(Vec<([String; 2], [bool; 2])>);

impl Pairs {
    /// The index of the interval of an engine, which knows the other one by name.
    pub(super) fn join(
        &mut self,
        intervals: &mut Vec<Interval>,
        name: &str,
        other: &str,
        half: &Half,
    ) -> Result<usize, EngineError> {
        let (side, names) = match half {
            Half::Start { .. } => (0, [name, other]),
            Half::End { .. } => (1, [other, name]),
        };
        let index = match self.0.iter().position(|(pair, _)| pair == &names) {
            Some(index) => index,
            None => {
                self.0.push((names.map(str::to_owned), [false; 2]));
                intervals.push(Interval::EMPTY);
                intervals.len() - 1
            }
        };
        if std::mem::replace(&mut self.0[index].1[side], true) {
            return Err(EngineError::new("two engines have this name; rename one"));
        }
        let interval = &mut intervals[index];
        match half {
            Half::Start { offset, gap } => {
                interval.start_ms = *offset;
                interval.gap = *gap;
            }
            Half::End { duration } => interval.duration = *duration,
        }
        Ok(index)
    }

    /// Refuses a pair of which one engine is missing.
    pub(super) fn finish(self) -> Result<(), EngineError> {
        for ([start, end], seen) in self.0 {
            if seen != [true, true] {
                return Err(EngineError::new(format!(
                    "time engines '{start}' and '{end}' must name each other"
                )));
            }
        }
        Ok(())
    }
}
