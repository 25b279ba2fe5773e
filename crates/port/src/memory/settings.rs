//! What a link between memory ports may be told: rate, delay, loss, seed.

use std::fmt;
use std::str::FromStr;

use allosaur_netdev::names;

use crate::{PortError, settings};

/// Lowest rate of a link.
pub const RATE_BPS_MIN: f64 = 1e3;
/// Highest rate of a link.
pub const RATE_BPS_MAX: f64 = 1e12;
/// Longest delay of a link.
pub const DELAY_NS_MAX: u64 = 10_000_000_000;

/// One direction of a link. The default is without limit, delay or loss.
///
/// As text: `rate=10gbps:delay=1ms:loss=0.1%:seed=7`, each part at most once and in any order;
/// the empty text is the default. Values that are set past the ranges given here are pulled to
/// the nearest end when a link is made, and NaN counts as not set; the text form refuses both.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSettings {
    /// Bits per second at layer 1, [`RATE_BPS_MIN`] to [`RATE_BPS_MAX`]: a frame of `n` bytes
    /// without FCS takes the time of `n + 24` bytes. `None` is without limit.
    pub rate_bps: Option<f64>,
    /// From the last bit sent to the frame's arrival, at most [`DELAY_NS_MAX`].
    pub delay_ns: u64,
    /// The share of frames that are lost, 0 to 1.
    pub loss: f64,
    /// Which frames are lost: the same seed loses the same ones.
    pub seed: u64,
}

impl LinkSettings {
    /// True when frames arrive at once and none is lost.
    pub fn is_unlimited(&self) -> bool {
        self.rate_bps.is_none() && self.delay_ns == 0 && self.loss <= 0.0
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), (String, String)> {
        let problem = |range: &str| {
            (
                format!("'{value}' is not a {name}"),
                format!("Write {range}"),
            )
        };
        match name {
            "rate" => {
                let rate = number_with_unit(value, &RATE_UNITS)
                    .filter(|rate| (RATE_BPS_MIN..=RATE_BPS_MAX).contains(rate));
                self.rate_bps = Some(rate.ok_or_else(|| problem(RATE_REMEDY))?);
            }
            "delay" => {
                let delay_ns = number_with_unit(value, &DELAY_UNITS)
                    .filter(|delay| (0.0..=DELAY_NS_MAX as f64).contains(delay));
                self.delay_ns = delay_ns.ok_or_else(|| problem(DELAY_REMEDY))?.round() as u64;
            }
            "loss" => {
                let percent = number_with_unit(value, &[("%", 1.0)])
                    .filter(|percent| (0.0..=100.0).contains(percent));
                self.loss = percent.ok_or_else(|| problem(LOSS_REMEDY))? / 100.0;
            }
            "seed" => self.seed = value.parse().map_err(|_| problem(SEED_REMEDY))?,
            _ => {
                let remedy = "A memory port has the settings rate, delay, loss and seed, as in \
                              memory:rate=10gbps:delay=1ms:loss=0.1%:seed=7";
                let meant = names::nearest(name, ["rate", "delay", "loss", "seed"]);
                let meant = meant.map(|name| format!(" (did you mean {name}?)"));
                let problem = format!("unknown setting '{name}'{}", meant.unwrap_or_default());
                return Err((problem, remedy.to_owned()));
            }
        }
        Ok(())
    }
}

const RATE_UNITS: [(&str, f64); 4] = [("gbps", 1e9), ("mbps", 1e6), ("kbps", 1e3), ("bps", 1.0)];
const DELAY_UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

const RATE_REMEDY: &str = "a rate from 1kbps to 1000gbps with its unit (bps, kbps, mbps or \
                           gbps), as in rate=10gbps, or leave it out for no limit";
const DELAY_REMEDY: &str = "a delay from 0ns to 10s with its unit (ns, us, ms or s), as in \
                            delay=1ms";
const LOSS_REMEDY: &str = "a share from 0% to 100% with its percent sign, as in loss=0.1%";
const SEED_REMEDY: &str = "a whole number from 0 to 18446744073709551615, as in seed=7";

impl FromStr for LinkSettings {
    type Err = PortError;

    fn from_str(given: &str) -> Result<LinkSettings, PortError> {
        let mut settings = LinkSettings::default();
        settings::each(given, |name, value| settings.set(name, value))?;
        Ok(settings)
    }
}

impl fmt::Display for LinkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(rate_bps) = self.rate_bps {
            parts.push(format!("rate={}", in_units(rate_bps, &RATE_UNITS)));
        }
        if self.delay_ns > 0 {
            let delay = in_units(self.delay_ns as f64, &DELAY_UNITS);
            parts.push(format!("delay={delay}"));
        }
        if self.loss > 0.0 {
            parts.push(format!("loss={}%", self.loss * 100.0));
        }
        if self.seed > 0 {
            parts.push(format!("seed={}", self.seed));
        }
        f.write_str(&parts.join(":"))
    }
}

/// A decimal number directly followed by one of `units`, in its base unit. No sign, no exponent.
fn number_with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let &(_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: f64 = digits.parse().ok().filter(|_| plain)?;
    Some(number * factor)
}

/// A value as a user writes it: in the largest of `units`, which fall to one of factor 1, of which it
/// is one or more, if that text is read as the same value.
fn in_units(value: f64, units: &[(&str, f64)]) -> String {
    let texts = units.iter().filter(|(_, factor)| value >= *factor);
    let mut texts = texts.map(|(unit, factor)| format!("{}{unit}", value / factor));
    let is_same = |text: &String| number_with_unit(text, units) == Some(value);
    let base = units.last().map_or("", |(unit, _)| unit);
    texts
        .find(is_same)
        .unwrap_or_else(|| format!("{value}{base}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<LinkSettings, String> {
        text.parse().map_err(|e: PortError| e.to_string())
    }

    #[test]
    fn every_setting_is_understood() {
        let settings = parse("rate=2.5gbps:delay=1ms:loss=0.1%:seed=7").expect("well formed");
        let expected = LinkSettings {
            rate_bps: Some(2.5e9),
            delay_ns: 1_000_000,
            loss: 0.001,
            seed: 7,
        };
        assert_eq!(settings, expected);
        assert_eq!(parse(&settings.to_string()), Ok(settings));
        assert_eq!(parse(""), Ok(LinkSettings::default()));
    }

    #[test]
    fn settings_are_shown_as_they_are_written() {
        for text in [
            "rate=10gbps:delay=1ms:loss=0.1%:seed=7",
            "rate=2.5gbps:delay=2.5us",
            "rate=1500bps:delay=999ns",
            "rate=1.000000001gbps:delay=1.5s",
            "delay=10s",
        ] {
            let shown = parse(text).expect("well formed").to_string();
            let written = text.replace("1500bps", "1.5kbps");
            assert_eq!(shown, written);
        }
    }

    #[test]
    fn units_scale() {
        for (text, rate_bps) in [("5KBPS", 5e3), ("1mbps", 1e6), ("4000bps", 4e3)] {
            let settings = parse(&format!("rate={text}")).expect("well formed");
            assert_eq!(settings.rate_bps, Some(rate_bps));
        }
        for (text, delay_ns) in [("7ns", 7), ("2.5us", 2500), ("10s", DELAY_NS_MAX)] {
            let settings = parse(&format!("delay={text}")).expect("well formed");
            assert_eq!(settings.delay_ns, delay_ns);
        }
    }

    #[test]
    fn bad_values_name_the_field_and_the_remedy() {
        for (text, field, remedy) in [
            ("rate=0gbps", "rate", "1kbps to 1000gbps"),
            ("rate=10", "rate", "with its unit"),
            ("rate=-1gbps", "rate", "leave it out"),
            ("rate=nanbps", "rate", "1kbps"),
            ("rate=", "rate", "1kbps"),
            ("delay=11s", "delay", "0ns to 10s"),
            ("delay=1", "delay", "ms"),
            ("delay=1e3ms", "delay", "ms"),
            ("loss=101%", "loss", "0% to 100%"),
            ("loss=0.1", "loss", "percent sign"),
            ("loss=-1%", "loss", "0% to 100%"),
            ("seed=-1", "seed", "whole number"),
            ("seed", "seed", "whole number"),
            ("colour=red", "colour", "rate, delay, loss and seed"),
            ("delya=1", "delya", "did you mean delay?"),
            ("delay=1ms:", "''", "rate, delay, loss and seed"),
            ("delay=1ms:delay=2ms", "delay", "once"),
            ("rate=1ä", "rate", "1kbps"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(field) && error.contains(remedy), "{error}");
        }
    }

    #[test]
    fn unlimited_means_that_nothing_happens_to_a_frame() {
        assert!(LinkSettings::default().is_unlimited());
        for text in ["rate=1gbps", "delay=1ns", "loss=1%"] {
            assert!(!parse(text).expect("well formed").is_unlimited(), "{text}");
        }
    }
}
