//! What a link between memory ports may be told: its line, and the device that it stands for.

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
/// On a link with a rate a ring holds what the link carries in this time, and what is in flight:
/// load that the link cannot carry is seen as missed soon, and does not hide in a long queue. A
/// policer passes what comes in this time at once, unless it is told another burst.
pub const QUEUE_NS: u64 = 5_000_000;
/// Lowest rate of frames that a link is policed to.
pub const POLICE_PPS_MIN: f64 = 1.0;
/// Highest rate of frames that a link is policed to.
pub const POLICE_PPS_MAX: f64 = 1e9;
/// Longest burst that a policer passes.
pub const BURST_FRAMES_MAX: u64 = 1_000_000_000;

/// One direction of a link. The default is without limit, delay or loss.
///
/// As text: `rate=10gbps:delay=1ms:loss=0.1%:seed=7`, each part at most once and in any order;
/// `police=1mpps:loss=0.01%:loss_above=800kpps:burst=1000` is a device with a limit. The empty text
/// is the default. Values that are set past the ranges given here are pulled to
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
    /// Frames per second, [`POLICE_PPS_MIN`] to [`POLICE_PPS_MAX`]: those above are dropped, as
    /// `police` of tc(8) does. `None` drops none.
    pub police_pps: Option<f64>,
    /// Frames per second from which on `loss` is for: below nothing is lost. `None` is from 0.
    pub loss_above_pps: Option<f64>,
    /// How many frames above the last two pass at once, 1 to [`BURST_FRAMES_MAX`]. `None` is what
    /// they are in [`QUEUE_NS`].
    pub burst_frames: Option<u64>,
}

impl LinkSettings {
    /// True when frames arrive at once and none is lost.
    pub fn is_unlimited(&self) -> bool {
        let has_line = self.rate_bps.is_some() || self.delay_ns > 0;
        !has_line && self.loss <= 0.0 && self.police_pps.is_none()
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
            "police" | "loss_above" => {
                let rate_pps = number_with_unit(value, &FRAME_RATE_UNITS)
                    .filter(|rate| (POLICE_PPS_MIN..=POLICE_PPS_MAX).contains(rate));
                let rate_pps = rate_pps.ok_or_else(|| {
                    problem(&format!("{FRAME_RATE_REMEDY}, as in {name}=800kpps"))
                })?;
                match name {
                    "police" => self.police_pps = Some(rate_pps),
                    _ => self.loss_above_pps = Some(rate_pps),
                }
            }
            "burst" => {
                let frames = value.parse().ok();
                let frames = frames.filter(|frames| (1..=BURST_FRAMES_MAX).contains(frames));
                self.burst_frames = Some(frames.ok_or_else(|| problem(BURST_REMEDY))?);
            }
            _ => {
                let remedy = "A memory port has the settings rate, delay, loss, seed, police, \
                              loss_above and burst, as in \
                              memory:rate=10gbps:delay=1ms:loss=0.1%:seed=7";
                let meant = names::nearest(name, NAMES);
                let meant = meant.map(|name| format!(" (did you mean {name}?)"));
                let problem = format!("unknown setting '{name}'{}", meant.unwrap_or_default());
                return Err((problem, remedy.to_owned()));
            }
        }
        Ok(())
    }

    /// Settings that mean nothing without another, as (problem, remedy).
    fn incomplete(&self) -> Option<(&str, &str)> {
        let is_metered = self.police_pps.is_some() || self.loss_above_pps.is_some();
        if self.loss_above_pps.is_some() && self.loss <= 0.0 {
            return Some((
                "loss_above says from which rate on frames are lost, but no loss is given",
                "Add the share that is lost there, as in loss=0.01%:loss_above=800kpps",
            ));
        }
        if self.burst_frames.is_some() && !is_metered {
            return Some((
                "burst is how many frames pass at once, but nothing limits them",
                "Add police or loss_above, as in police=1mpps:burst=1000",
            ));
        }
        None
    }
}

const NAMES: [&str; 7] = [
    "rate",
    "delay",
    "loss",
    "seed",
    "police",
    "loss_above",
    "burst",
];

const FRAME_RATE_UNITS: [(&str, f64); 3] = [("mpps", 1e6), ("kpps", 1e3), ("pps", 1.0)];
const RATE_UNITS: [(&str, f64); 4] = [("gbps", 1e9), ("mbps", 1e6), ("kbps", 1e3), ("bps", 1.0)];
const DELAY_UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

const RATE_REMEDY: &str = "a rate from 1kbps to 1000gbps with its unit (bps, kbps, mbps or \
                           gbps), as in rate=10gbps, or leave it out for no limit";
const DELAY_REMEDY: &str = "a delay from 0ns to 10s with its unit (ns, us, ms or s), as in \
                            delay=1ms";
const LOSS_REMEDY: &str = "a share from 0% to 100% with its percent sign, as in loss=0.1%";
const FRAME_RATE_REMEDY: &str = "frames per second from 1pps to 1000mpps with their unit (pps, \
                                 kpps or mpps)";
const BURST_REMEDY: &str = "a whole number of frames from 1 to 1000000000, as in burst=1000";
const SEED_REMEDY: &str = "a whole number from 0 to 18446744073709551615, as in seed=7";

impl FromStr for LinkSettings {
    type Err = PortError;

    fn from_str(given: &str) -> Result<LinkSettings, PortError> {
        let mut settings = LinkSettings::default();
        settings::each(given, |name, value| settings.set(name, value))?;
        match settings.incomplete() {
            None => Ok(settings),
            Some((problem, remedy)) => Err(PortError::Description {
                given: given.to_owned(),
                problem: problem.to_owned(),
                remedy: remedy.to_owned(),
            }),
        }
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
        let rates = [
            ("police", self.police_pps),
            ("loss_above", self.loss_above_pps),
        ];
        for (name, rate_pps) in rates {
            let rate_pps = rate_pps.map(|rate_pps| in_units(rate_pps, &FRAME_RATE_UNITS));
            parts.extend(rate_pps.map(|rate_pps| format!("{name}={rate_pps}")));
        }
        parts.extend(self.burst_frames.map(|frames| format!("burst={frames}")));
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
            ..LinkSettings::default()
        };
        assert_eq!(settings, expected);
        assert_eq!(parse(&settings.to_string()), Ok(settings));
        let device = parse("police=1mpps:loss=0.01%:loss_above=800kpps:burst=1000");
        let expected = LinkSettings {
            loss: 0.0001,
            police_pps: Some(1e6),
            loss_above_pps: Some(800e3),
            burst_frames: Some(1000),
            ..LinkSettings::default()
        };
        assert_eq!(device, Ok(expected));
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
            "loss=0.5%:seed=1:police=1mpps:loss_above=800kpps:burst=1000",
            "police=2.5kpps",
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
            ("police=1mbps", "police", "1pps to 1000mpps"),
            ("police=0pps", "police", "1pps"),
            ("police=1001mpps", "police", "1000mpps"),
            ("police=800", "police", "with their unit"),
            (
                "loss_above=fast:loss=1%",
                "loss_above",
                "as in loss_above=800kpps",
            ),
            ("loss_above=1kpps", "no loss is given", "loss=0.01%"),
            ("loss_above=1kpps:loss=0%", "no loss is given", "loss=0.01%"),
            ("burst=10", "nothing limits them", "Add police"),
            ("police=1kpps:burst=0", "burst", "from 1 to"),
            ("police=1kpps:burst=1.5", "burst", "whole number"),
            ("police=1kpps:burst=", "burst", "burst=1000"),
            ("polic=1kpps", "polic", "did you mean police?"),
            ("colour=red", "colour", "rate, delay, loss, seed, police"),
            ("delya=1", "delya", "did you mean delay?"),
            ("delay=1ms:", "''", "rate, delay, loss, seed, police"),
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
        for text in ["rate=1gbps", "delay=1ns", "loss=1%", "police=1mpps"] {
            assert!(!parse(text).expect("well formed").is_unlimited(), "{text}");
        }
    }
}
