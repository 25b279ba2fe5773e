//! Messages (RFC 1035, section 4): a parser that takes any bytes, and a builder that does not
//! compress names, as the reference.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::kind::{Class, Kind};

/// Bytes of the header.
const HEADER_BYTES: usize = 12;
/// Flag of a response (QR).
pub(crate) const RESPONSE: u16 = 0x8000;
/// Flags of a response by the owner of the names (QR and AA).
pub(crate) const AUTHORITATIVE: u16 = 0x8400;
/// The bits of the response code.
pub(crate) const CODE: u16 = 0x000f;
/// Flag of a message of which something was cut off (TC).
const TRUNCATED: u8 = 0x02;
/// Response code: the question could not be read.
pub(crate) const FORMAT_ERROR: u16 = 1;
/// Response code: there is no such name.
pub(crate) const NAME_ERROR: u16 = 3;
/// RFC 1035, section 2.3.4: labels have 63 octets or less, names 255 or less.
const LABEL_BYTES_MAX: usize = 63;
const NAME_BYTES_MAX: usize = 255;
/// The two high bits of a pointer (section 4.1.4).
const POINTER: u8 = 0xc0;

/// A name as it is on the wire without compression: labels with their length in front, and an
/// empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(Vec<u8>);

impl Name {
    /// The name of a text such as `host.local`.
    pub(crate) fn new(text: &str) -> Option<Name> {
        let mut bytes = Vec::with_capacity(text.len() + 2);
        for label in text.strip_suffix('.').unwrap_or(text).split('.') {
            let length = u8::try_from(label.len()).ok()?;
            if label.is_empty() || label.len() > LABEL_BYTES_MAX {
                return None;
            }
            bytes.push(length);
            bytes.extend_from_slice(label.as_bytes());
        }
        bytes.push(0);
        (bytes.len() <= NAME_BYTES_MAX).then_some(Name(bytes))
    }

    /// Reads a name, and says where it ends. Pointers go back only, so that none is followed twice.
    fn parse(message: &[u8], mut at: usize) -> Option<(Name, usize)> {
        let mut bytes = Vec::new();
        let mut end = None;
        let mut limit = at;
        loop {
            let length = *message.get(at)?;
            if length & POINTER == POINTER {
                let low = *message.get(at + 1)?;
                end.get_or_insert(at + 2);
                at = usize::from(length & !POINTER) << 8 | usize::from(low);
                if at >= limit {
                    return None;
                }
                limit = at;
                continue;
            }
            let label = message.get(at..at + 1 + usize::from(length))?;
            if usize::from(length) > LABEL_BYTES_MAX || bytes.len() + label.len() > NAME_BYTES_MAX {
                return None;
            }
            bytes.extend_from_slice(label);
            at += label.len();
            if length == 0 {
                return Some((Name(bytes), end.unwrap_or(at)));
            }
        }
    }

    /// What names are compared by (section 2.3.3: not by case).
    pub(crate) fn key(&self) -> String {
        self.to_string().to_ascii_lowercase()
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &self.0[..];
        let mut first = true;
        while let Some((&length, behind)) = rest.split_first().filter(|(length, _)| **length != 0) {
            let (label, behind) = behind.split_at(usize::from(length).min(behind.len()));
            let dot = if first { "" } else { "." };
            write!(f, "{dot}{}", String::from_utf8_lossy(label))?;
            (rest, first) = (behind, false);
        }
        Ok(())
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) class: Class,
}

/// A resource record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) class: Class,
    pub(crate) ttl_s: u32,
    /// What an answer of type A, AAAA or PTR says, as text; nothing for other types.
    pub(crate) answer: Option<String>,
}

/// A message whose every byte was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: u16,
    pub(crate) flags: u16,
    pub(crate) questions: Vec<Question>,
    pub(crate) answers: Vec<Record>,
    /// How many records of authority and how many additional ones follow.
    pub(crate) others: [u16; 2],
}

impl Message {
    /// Reads a message. Its lists are not longer than the bytes, whatever the header says.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Message> {
        let number = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        let mut at = HEADER_BYTES;
        let mut message = Message {
            id: number(0)?,
            flags: number(2)?,
            questions: Vec::new(),
            answers: Vec::new(),
            others: [number(8)?, number(10)?],
        };
        for _ in 0..number(4)? {
            let (name, end) = Name::parse(bytes, at)?;
            let (kind, class) = (Kind(number(end)?), Class(number(end + 2)?));
            message.questions.push(Question { name, kind, class });
            at = end + 4;
        }
        for _ in 0..number(6)? {
            let (record, end) = parse_record(bytes, at)?;
            message.answers.push(record);
            at = end;
        }
        for _ in 0..u32::from(message.others[0]) + u32::from(message.others[1]) {
            at = parse_record(bytes, at)?.1;
        }
        Some(message)
    }
}

fn parse_record(bytes: &[u8], at: usize) -> Option<(Record, usize)> {
    let (name, at) = Name::parse(bytes, at)?;
    let fixed: [u8; 10] = bytes.get(at..at + 10)?.try_into().ok()?;
    let [
        kind_high,
        kind,
        class_high,
        class,
        ttl @ ..,
        length_high,
        length,
    ] = fixed;
    let from = at + fixed.len();
    let end = from + usize::from(u16::from_be_bytes([length_high, length]));
    let data = bytes.get(from..end)?;
    let kind = Kind(u16::from_be_bytes([kind_high, kind]));
    let answer = match kind {
        Kind::A => Some(Ipv4Addr::from(<[u8; 4]>::try_from(data).ok()?).to_string()),
        Kind::AAAA => Some(Ipv6Addr::from(<[u8; 16]>::try_from(data).ok()?).to_string()),
        Kind::PTR => Some(Name::parse(bytes, from)?.0.to_string()),
        _ => None,
    };
    let record = Record {
        name,
        kind,
        class: Class(u16::from_be_bytes([class_high, class])),
        ttl_s: u32::from_be_bytes(ttl),
        answer,
    };
    Some((record, end))
}

/// A message under construction, which never grows beyond its limit.
#[derive(Debug)]
pub(crate) struct Builder {
    bytes: Vec<u8>,
    limit: usize,
}

impl Builder {
    /// An empty message of at most `limit` bytes.
    pub(crate) fn new(id: u16, flags: u16, limit: usize) -> Builder {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..2].copy_from_slice(&id.to_be_bytes());
        bytes[2..4].copy_from_slice(&flags.to_be_bytes());
        Builder { bytes, limit }
    }

    /// Appends a question; returns whether there was room. Questions come before records.
    pub(crate) fn question(&mut self, name: &Name, kind: Kind, class: Class) -> bool {
        let fixed = [kind.0.to_be_bytes(), class.0.to_be_bytes()].concat();
        self.push(4, &[name.bytes(), &fixed])
    }

    /// Appends an answer; returns whether there was room.
    pub(crate) fn answer(&mut self, question: &Question, ttl_s: u32, data: &[u8]) -> bool {
        let Ok(length) = u16::try_from(data.len()) else {
            return false;
        };
        let mut fixed = [0; 10];
        fixed[..2].copy_from_slice(&question.kind.0.to_be_bytes());
        fixed[2..4].copy_from_slice(&question.class.0.to_be_bytes());
        fixed[4..8].copy_from_slice(&ttl_s.to_be_bytes());
        fixed[8..].copy_from_slice(&length.to_be_bytes());
        self.push(6, &[question.name.bytes(), &fixed, data])
    }

    /// Sets the response code.
    pub(crate) fn set_code(&mut self, code: u16) {
        self.bytes[3] = self.bytes[3] & 0xf0 | (code & CODE) as u8;
    }

    /// Says that something did not fit.
    pub(crate) fn set_truncated(&mut self) {
        self.bytes[2] |= TRUNCATED;
    }

    /// How many answers there are.
    pub(crate) fn answers(&self) -> u16 {
        u16::from_be_bytes([self.bytes[6], self.bytes[7]])
    }

    /// The message.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    fn push(&mut self, counter: usize, parts: &[&[u8]]) -> bool {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if self.bytes.len() + bytes > self.limit {
            return false;
        }
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        let count = u16::from_be_bytes([self.bytes[counter], self.bytes[counter + 1]]) + 1;
        self.bytes[counter..counter + 2].copy_from_slice(&count.to_be_bytes());
        true
    }
}

/// The data of a TXT record (RFC 1035, section 3.3.14): each text with its length in front.
/// Longer texts than 255 bytes are cut.
pub(crate) fn txt_data<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<u8> {
    let mut data = Vec::new();
    for text in texts {
        let bytes = &text.as_bytes()[..text.len().min(255)];
        data.push(bytes.len() as u8);
        data.extend_from_slice(bytes);
    }
    data
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn question(name: &str) -> Question {
        Question {
            name: Name::new(name).expect("a name"),
            kind: Kind::PTR,
            class: Class::IN,
        }
    }

    #[test]
    fn compressed_names_are_read() {
        let mut bytes = Builder::new(7, AUTHORITATIVE, 512);
        assert!(bytes.question(&Name::new("a.local").unwrap(), Kind::A, Class::IN));
        let mut bytes = bytes.finish();
        bytes[7] = 1;
        // b, then a pointer to "local"; PTR of a pointer to the whole first name.
        bytes.extend_from_slice(&[1, b'b', 0xc0, 14, 0, 12, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 12]);
        let message = Message::parse(&bytes).expect("a message");
        assert_eq!((message.id, message.flags), (7, AUTHORITATIVE));
        let answer = &message.answers[0];
        assert_eq!(answer.name.to_string(), "b.local");
        assert_eq!(
            (answer.ttl_s, answer.answer.as_deref()),
            (9, Some("a.local"))
        );
    }

    #[test]
    fn a_pointer_that_goes_on_or_round_is_refused() {
        for pointer in [12, 13, 200] {
            let mut bytes = Builder::new(0, 0, 512).finish();
            bytes[5] = 1;
            bytes.extend_from_slice(&[0xc0, pointer, 0, 1, 0, 1]);
            assert_eq!(Message::parse(&bytes), None, "pointer to {pointer}");
        }
    }

    #[test]
    fn names_have_limits() {
        assert_eq!(Name::new("a..b"), None);
        assert_eq!(Name::new(&"a".repeat(64)), None);
        assert_eq!(Name::new(&"abc.".repeat(64)), None);
        assert_eq!(Name::new("a.b.").unwrap(), Name::new("a.b").unwrap());
        assert_eq!(Name::new("A.b").unwrap().key(), "a.b");
    }

    #[test]
    fn a_message_does_not_grow_beyond_its_limit() {
        let mut message = Builder::new(0, 0, 64);
        let answered = (0..10).take_while(|_| message.answer(&question("host"), 1, &[0; 4]));
        assert_eq!(answered.count(), 2);
        assert_eq!(message.answers(), 2);
        assert_eq!(message.finish().len(), 12 + 2 * 20);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(message) = Message::parse(&bytes) {
                prop_assert!(message.questions.len() * 5 <= bytes.len());
                prop_assert!(message.answers.len() * 11 <= bytes.len());
            }
        }

        #[test]
        fn any_bytes_behind_a_header_are_read(
            counts in any::<[u8; 4]>(), bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut message = vec![0; 12];
            for (index, count) in counts.iter().enumerate() {
                message[5 + 2 * index] = count % 4;
            }
            message.extend_from_slice(&bytes);
            let _ = Message::parse(&message);
        }

        #[test]
        fn what_is_built_is_read_again(
            id in any::<u16>(), name in "[a-zA-Z0-9_-]{1,20}(\\.[a-z0-9]{1,10}){0,4}",
            ttl_s in any::<u32>(),
        ) {
            let asked = question(&name);
            let mut message = Builder::new(id, AUTHORITATIVE, 512);
            prop_assert!(message.question(&asked.name, asked.kind, asked.class));
            prop_assert!(message.answer(&asked, ttl_s, asked.name.bytes()));
            let read = Message::parse(&message.finish()).expect("our own message");
            prop_assert_eq!(&read.questions, &vec![asked.clone()]);
            prop_assert_eq!(&read.answers[0].name, &asked.name);
            prop_assert_eq!(read.answers[0].answer.as_deref(), Some(name.as_str()));
            prop_assert_eq!(read.answers[0].ttl_s, ttl_s);
        }
    }
}
