//! What an AF_XDP port may be told: queues, mode, zero copy, busy polling.

use std::fmt;
use std::str::FromStr;

use crate::{PortError, settings};

/// Most hardware queues that a port uses.
pub const QUEUES_MAX: usize = 64;

/// The settings of an AF_XDP port. The default takes the best that the driver offers.
///
/// As text: `queues=2:mode=native:zero_copy=no:busy_poll=yes`, each part at most once and in any
/// order; the empty text is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpSettings {
    /// How many hardware queues are used, the first ones; `None` is all of them, [`QUEUES_MAX`] at
    /// most. What arrives on others goes to the kernel.
    pub queues: Option<usize>,
    /// Where the XDP program runs.
    pub mode: Mode,
    /// Whether the device reads and writes the frames itself.
    pub zero_copy: Choice,
    /// Whether who receives asks the driver for frames, instead of an interrupt.
    pub busy_poll: bool,
}

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, where it can, else in the kernel's own code.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// In the kernel's own code, which works for every driver.
    Generic,
}

/// What is wished, where a driver may not offer it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Where it is offered.
    #[default]
    Auto,
    /// It must be.
    Yes,
    /// Not even where it is offered.
    No,
}

const MODES: [(&str, Mode); 3] = [
    ("auto", Mode::Auto),
    ("native", Mode::Native),
    ("generic", Mode::Generic),
];
const CHOICES: [(&str, Choice); 3] = [
    ("auto", Choice::Auto),
    ("yes", Choice::Yes),
    ("no", Choice::No),
];
const SWITCH: [(&str, bool); 2] = [("yes", true), ("no", false)];

impl XdpSettings {
    fn set(&mut self, name: &str, value: &str) -> Result<(), (String, String)> {
        match name {
            "queues" => {
                let queues = value.parse().ok();
                let queues = queues.filter(|queues| (1..=QUEUES_MAX).contains(queues));
                self.queues = Some(queues.ok_or_else(|| {
                    (
                        format!("'{value}' is not a number of queues"),
                        format!("Write a whole number from 1 to {QUEUES_MAX}, as in queues=2"),
                    )
                })?);
            }
            "mode" => self.mode = one_of(name, value, &MODES)?,
            "zero_copy" => self.zero_copy = one_of(name, value, &CHOICES)?,
            "busy_poll" => self.busy_poll = one_of(name, value, &SWITCH)?,
            _ => {
                let remedy = "An AF_XDP port has the settings queues, mode, zero_copy and \
                              busy_poll, as in af_xdp:eth0:queues=2:mode=native";
                return Err((format!("unknown setting '{name}'"), remedy.to_owned()));
            }
        }
        Ok(())
    }
}

/// The value of a word.
fn one_of<T: Copy>(name: &str, value: &str, words: &[(&str, T)]) -> Result<T, (String, String)> {
    let found = words.iter().find(|(word, _)| *word == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let words = words.join(", ");
        (
            format!("'{value}' is not a value of {name}"),
            format!("Write one of {words}, as in {name}=no").replace("mode=no", "mode=native"),
        )
    })
}

/// The word of a value.
fn word_of<T: PartialEq>(value: &T, words: &[(&'static str, T)]) -> &'static str {
    let found = words.iter().find(|(_, meaning)| meaning == value);
    found.expect("every value has a word").0
}

impl FromStr for XdpSettings {
    type Err = PortError;

    fn from_str(given: &str) -> Result<XdpSettings, PortError> {
        let mut settings = XdpSettings::default();
        settings::each(given, |name, value| settings.set(name, value))?;
        Ok(settings)
    }
}

impl fmt::Display for XdpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(queues) = self.queues {
            parts.push(format!("queues={queues}"));
        }
        if self.mode != Mode::Auto {
            parts.push(format!("mode={}", word_of(&self.mode, &MODES)));
        }
        if self.zero_copy != Choice::Auto {
            parts.push(format!("zero_copy={}", word_of(&self.zero_copy, &CHOICES)));
        }
        if self.busy_poll {
            parts.push("busy_poll=yes".to_owned());
        }
        f.write_str(&parts.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<XdpSettings, String> {
        text.parse().map_err(|e: PortError| e.to_string())
    }

    #[test]
    fn every_setting_is_understood() {
        let settings = parse("queues=2:mode=native:zero_copy=no:busy_poll=yes");
        let settings = settings.expect("well formed");
        let expected = XdpSettings {
            queues: Some(2),
            mode: Mode::Native,
            zero_copy: Choice::No,
            busy_poll: true,
        };
        assert_eq!(settings, expected);
        assert_eq!(parse(&settings.to_string()), Ok(settings));
        assert_eq!(parse(""), Ok(XdpSettings::default()));
        let default = parse("mode=auto:zero_copy=auto:busy_poll=no");
        assert_eq!(default, Ok(XdpSettings::default()));
        assert_eq!(XdpSettings::default().to_string(), "");
    }

    #[test]
    fn bad_values_name_the_field_and_the_remedy() {
        for (text, field, remedy) in [
            ("queues=0", "queues", "1 to 64"),
            ("queues=65", "queues", "1 to 64"),
            ("queues=-1", "queues", "queues=2"),
            ("queues", "queues", "queues=2"),
            ("mode=fast", "mode", "auto, native, generic"),
            ("mode=", "mode", "mode=native"),
            ("zero_copy=1", "zero_copy", "auto, yes, no"),
            ("busy_poll=auto", "busy_poll", "yes, no"),
            (
                "colour=red",
                "colour",
                "queues, mode, zero_copy and busy_poll",
            ),
            ("queues=1:", "''", "queues, mode, zero_copy and busy_poll"),
            ("queues=1:queues=1", "queues", "once"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(field) && error.contains(remedy), "{error}");
        }
    }
}
