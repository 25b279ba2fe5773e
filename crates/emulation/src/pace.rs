//! How often something is sent that has a rate.

use allosaur_api::Error;
use allosaur_engine::time::{Nanos, SECOND};
use serde_json::{Number, Value};

/// Most packets a second.
const RATE_MAX: f64 = 1e6;

/// A rate, and what is due of it.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    rate: f64,
    /// Parts of packets that are due.
    part: f64,
}

impl Pace {
    /// So many packets a second; none when it is 0. The parameter is called `name`.
    ///
    /// # Errors
    /// When there would be too many.
    pub(crate) fn new(name: &str, rate: f64) -> Result<Pace, Error> {
        match rate <= RATE_MAX {
            true => Ok(Pace { rate, part: 0.0 }),
            false => Err(Error::execution(format!(
                "{name} {rate} is more than {RATE_MAX} packets a second"
            ))),
        }
    }

    /// How often it is its turn, if ever; `tick` is the shortest time between two turns.
    pub(crate) fn interval(&self, tick: Nanos) -> Option<Nanos> {
        (self.rate > 0.0).then(|| ((SECOND as f64 / self.rate) as Nanos).max(tick))
    }

    /// How many packets to send in a turn.
    pub(crate) fn count(&mut self, tick: Nanos) -> u32 {
        let each = self.rate * tick as f64 / SECOND as f64;
        if each <= 1.0 {
            return 1;
        }
        self.part += each;
        let whole = self.part.floor();
        self.part -= whole;
        whole as u32
    }

    /// The rate as the RPC has it.
    pub(crate) fn to_json(&self) -> Value {
        let number = match self.rate.fract() == 0.0 {
            true => Some(Number::from(self.rate as u64)),
            false => Number::from_f64(self.rate),
        };
        number.map_or(Value::Null, Value::Number)
    }
}

#[cfg(test)]
mod tests {
    use allosaur_engine::time::MILLISECOND;

    use super::*;

    #[test]
    fn a_second_has_as_many_packets_as_the_rate_says() {
        let tick = 10 * MILLISECOND;
        for rate in [1_u32, 7, 100, 150, 12_345, 1_000_000] {
            let mut pace = Pace::new("rate_pps", rate.into()).expect("a good rate");
            let interval = pace.interval(tick).expect("it is sometimes its turn");
            let turns = SECOND / interval;
            let sent: u64 = (0..turns).map(|_| u64::from(pace.count(tick))).sum();
            assert!(sent.abs_diff(rate.into()) <= 1, "{rate}: {sent}");
        }
    }

    #[test]
    fn no_rate_is_no_turn_and_too_much_is_refused() {
        let pace = Pace::new("rate_pps", 0.0).expect("none is a rate");
        assert_eq!(pace.interval(1), None);
        let negative = Pace::new("rate_pps", -1.0).expect("so is less");
        assert_eq!(negative.interval(1), None);
        for rate in [1e7, f64::NAN, f64::INFINITY] {
            let error = Pace::new("rate_pps", rate).expect_err("too many");
            assert!(error.to_string().starts_with("rate_pps "), "{error}");
        }
    }
}
