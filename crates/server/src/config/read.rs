//! How values are read out of a tree: strictly, each error with its place and its key.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use super::yaml::{Flaw, Node, Place, Value};

/// A key that is understood: the documentation and the check against it have one source.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What may be written, in words.
    pub value: &'static str,
    /// What holds without it, in words.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// A value, as it may be written.
    pub example: &'static str,
}

/// What is wrong, or worth a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The key, with the way to it: `ports[0].vlan`. Empty when it is the whole text.
    pub key: String,
    /// What is wrong, and what is right.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.key.is_empty() { "" } else { ": " };
        write!(f, "{}: {}{colon}{}", self.place, self.key, self.text)
    }
}

impl From<Flaw> for Problem {
    fn from(flaw: Flaw) -> Problem {
        Problem {
            place: flaw.place,
            key: String::new(),
            text: flaw.problem,
        }
    }
}

/// What was found while reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What makes the text useless.
    pub problems: Vec<Problem>,
    /// What was understood and does not apply.
    pub warnings: Vec<Problem>,
    /// Where each port is named, in their order.
    pub ports: Vec<Mark>,
}

/// A place that others may want to say something about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where.
    pub place: Place,
    /// The key, with the way to it.
    pub key: String,
}

impl Mark {
    /// What is wrong with another key of that port.
    pub(super) fn problem(&self, key: &str, text: String) -> Problem {
        let port = self.key.strip_suffix(".port").unwrap_or(&self.key);
        Problem {
            place: self.place,
            key: format!("{port}.{key}"),
            text,
        }
    }

    /// What is worth a warning there.
    pub fn warning(&self, text: String) -> Problem {
        Problem {
            place: self.place,
            key: self.key.clone(),
            text,
        }
    }
}

/// A value and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    pub(super) key: String,
    pub(super) node: &'a Node,
}

impl<'a> Item<'a> {
    pub(super) fn root(node: &'a Node) -> Item<'a> {
        Item {
            key: String::new(),
            node,
        }
    }

    /// Says what is wrong with it.
    pub(super) fn refuse(&self, findings: &mut Findings, text: impl Into<String>) {
        findings.problems.push(self.problem(text.into()));
    }

    /// Says what of it does not apply.
    pub(super) fn warn(&self, findings: &mut Findings, text: impl Into<String>) {
        findings.warnings.push(self.problem(text.into()));
    }

    /// Remembers that a port is named here.
    pub(super) fn mark_port(&self, findings: &mut Findings) {
        findings.ports.push(Mark {
            place: self.node.place,
            key: self.key.clone(),
        });
    }

    fn problem(&self, text: String) -> Problem {
        Problem {
            place: self.node.place,
            key: self.key.clone(),
            text,
        }
    }

    /// Reads it with one of the readers below.
    pub(super) fn read<T>(
        &self,
        findings: &mut Findings,
        reader: impl FnOnce(&'a Node) -> Result<T, String>,
    ) -> Option<T> {
        match reader(self.node) {
            Ok(value) => Some(value),
            Err(text) => {
                self.refuse(findings, text);
                None
            }
        }
    }

    /// Its items, if it is a list.
    pub(super) fn list(&self, findings: &mut Findings) -> Vec<Item<'a>> {
        let Value::List(items) = &self.node.value else {
            let kind = self.node.value.kind();
            self.refuse(findings, format!("is {kind}: write a list"));
            return Vec::new();
        };
        let numbered = items.iter().enumerate();
        let item = |(n, node)| Item {
            key: format!("{}[{n}]", self.key),
            node,
        };
        numbered.map(item).collect()
    }

    /// Its keys and values, if it is a map.
    pub(super) fn entries(&self, findings: &mut Findings) -> Vec<(&'a str, Item<'a>)> {
        let Value::Map(entries) = &self.node.value else {
            let kind = self.node.value.kind();
            self.refuse(findings, format!("is {kind}: write keys with values"));
            return Vec::new();
        };
        let dot = if self.key.is_empty() { "" } else { "." };
        let entry = |(key, node): &'a (Node, Node)| match &key.value {
            Value::Text(name) => {
                let key = format!("{}{dot}{name}", self.key);
                Some((name.as_str(), Item { key, node }))
            }
            _ => None,
        };
        entries.iter().filter_map(entry).collect()
    }

    /// Its values by key, if it is a map that has only keys out of `keys`.
    pub(super) fn map(&self, keys: &[Key], findings: &mut Findings) -> Map<'a> {
        let mut known = Vec::new();
        for (name, item) in self.entries(findings) {
            if keys.iter().any(|key| key.name == name) {
                known.push((name, item));
                continue;
            }
            let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
            let text = format!("is not known. The keys here are: {}", names.join(", "));
            item.refuse(findings, text);
        }
        Map(known)
    }
}

/// The values of a map whose keys are all known.
#[derive(Clone, Debug)]
pub(super) struct Map<'a>(pub(super) Vec<(&'a str, Item<'a>)>);

impl<'a> Map<'a> {
    pub(super) fn find(&self, name: &str) -> Option<&Item<'a>> {
        let found = self.0.iter().find(|(key, _)| *key == name);
        found.map(|(_, item)| item)
    }

    /// Reads a value that may be left out.
    pub(super) fn read<T>(
        &self,
        name: &str,
        findings: &mut Findings,
        reader: impl FnOnce(&'a Node) -> Result<T, String>,
    ) -> Option<T> {
        self.find(name)?.read(findings, reader)
    }
}

/// A single value as text.
pub(super) fn text(node: &Node) -> Result<&str, String> {
    match &node.value {
        Value::Text(text) => Ok(text),
        other => Err(format!("is {}: write a single value", other.kind())),
    }
}

/// A whole number, also written `0x1f`.
pub(super) fn number(range: RangeInclusive<u64>) -> impl Fn(&Node) -> Result<u64, String> {
    move |node| {
        let (min, max) = (range.start(), range.end());
        let right = format!("write a whole number of {min} to {max}");
        let given = text(node).map_err(|problem| format!("{problem}, {right}"))?;
        let parsed = match given.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => given.parse(),
        };
        let is_plain = given.bytes().all(|c| c.is_ascii_alphanumeric());
        let in_range = parsed
            .ok()
            .filter(|number| is_plain && range.contains(number));
        in_range.ok_or_else(|| format!("'{given:.40}': {right}"))
    }
}

/// True or false.
pub(super) fn flag(node: &Node) -> Result<bool, String> {
    match text(node)?.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        other => Err(format!("'{other:.40}': write true or false")),
    }
}

/// A MAC address: text with colons, or a list of six numbers.
pub(super) fn mac(node: &Node) -> Result<[u8; 6], String> {
    let right = "write a MAC address such as 02:00:00:00:00:01";
    let bytes: Option<Vec<u8>> = match &node.value {
        Value::Text(text) => {
            let byte = |word: &str| match word.bytes().all(|c| c.is_ascii_hexdigit()) {
                true if word.len() <= 2 => u8::from_str_radix(word, 16).ok(),
                _ => None,
            };
            text.split([':', '-']).map(byte).collect()
        }
        Value::List(items) => {
            let byte = |item| number(0..=255)(item).ok().map(|value| value as u8);
            items.iter().map(byte).collect()
        }
        _ => None,
    };
    let mac = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
    let given = match &node.value {
        Value::Text(text) => format!("'{text:.40}'"),
        other => format!("is {}", other.kind()),
    };
    mac.ok_or_else(|| format!("{given}: {right}"))
}

/// A MAC address that a station can have.
pub(super) fn unicast_mac(node: &Node) -> Result<[u8; 6], String> {
    let mac = mac(node)?;
    if mac[0] & 1 == 1 || mac == [0; 6] {
        return Err("is no address of a station: write one whose first byte is even".to_owned());
    }
    Ok(mac)
}

/// The IPv4 address of a station.
pub(super) fn ipv4(node: &Node) -> Result<Ipv4Addr, String> {
    let right = "write an IPv4 address such as 10.0.0.1";
    let given = text(node).map_err(|problem| format!("{problem}, {right}"))?;
    let Ok(address) = given.parse::<Ipv4Addr>() else {
        return Err(format!("'{given:.40}': {right}"));
    };
    if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
        return Err(format!("'{given}' is no address of a station: {right}"));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::*;

    fn node(text: &str) -> Node {
        parse(text).expect("is YAML")
    }

    #[test]
    fn mac_addresses_are_text_or_lists() {
        let expected = Ok([0, 0x0a, 0x1b, 2, 3, 4]);
        for given in [
            "00:0a:1b:02:03:04",
            "0:a:1B:2:3:4",
            "'00-0a-1b-02-03-04'",
            "[0x0, 0xa, 27, 2, 3, 4]",
        ] {
            assert_eq!(mac(&node(given)), expected, "{given}");
        }
        for given in [
            "00:0a:1b:02:03",
            "00:0a:1b:02:03:04:05",
            "000:a:1:2:3:4",
            "+1:a:1:2:3:4",
            "[1, 2, 3, 4, 5, 256]",
            "[[1], 2, 3, 4, 5, 6]",
            "{a: b}",
            "12",
        ] {
            let error = mac(&node(given)).expect_err(given);
            assert!(error.contains("such as 02:00"), "{given}: {error}");
        }
        assert!(unicast_mac(&node("01:00:5e:00:00:01")).is_err());
        assert!(unicast_mac(&node("0:0:0:0:0:0")).is_err());
    }

    #[test]
    fn numbers_have_a_range() {
        assert_eq!(number(1..=9)(&node("9")), Ok(9));
        assert_eq!(number(0..=255)(&node("0xfF")), Ok(255));
        for given in [
            "10",
            "-1",
            "+1",
            "0x+1",
            "1.5",
            "one",
            "''",
            "[1]",
            "null",
            "99999999999999999999",
        ] {
            let error = number(0..=9)(&node(given)).expect_err(given);
            assert!(error.contains("0 to 9"), "{given}: {error}");
        }
    }

    #[test]
    fn addresses_are_those_of_stations() {
        assert_eq!(ipv4(&node("10.0.0.1")), Ok(Ipv4Addr::new(10, 0, 0, 1)));
        for given in [
            "10.0.0",
            "224.0.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "::1",
            "[1]",
        ] {
            assert!(ipv4(&node(given)).is_err(), "{given}");
        }
    }

    #[test]
    fn flags_are_yaml_s() {
        for (given, expected) in [
            ("true", true),
            ("Yes", true),
            ("off", false),
            ("false", false),
        ] {
            assert_eq!(flag(&node(given)), Ok(expected));
        }
        assert!(flag(&node("1")).is_err());
    }
}
