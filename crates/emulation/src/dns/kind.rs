//! Types and classes of records, by the names that the RPC has for them.

use std::fmt;

/// The type of a record (RFC 1035, section 3.2.2, and later ones).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind(pub(crate) u16);

/// The class of a record (RFC 1035, section 3.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class(pub(crate) u16);

impl Kind {
    pub(crate) const A: Kind = Kind(1);
    pub(crate) const PTR: Kind = Kind(12);
    pub(crate) const TXT: Kind = Kind(16);
    pub(crate) const AAAA: Kind = Kind(28);

    /// The type with a name; an empty name is A.
    pub(crate) fn named(name: &str) -> Option<Kind> {
        match name {
            "" => Some(Kind::A),
            _ => by_name(&KINDS, name).map(Kind),
        }
    }
}

impl Class {
    pub(crate) const IN: Class = Class(1);
    pub(crate) const ANY: Class = Class(255);

    /// The class with a name; an empty name is IN.
    pub(crate) fn named(name: &str) -> Option<Class> {
        match name {
            "" => Some(Class::IN),
            _ => by_name(&CLASSES, name).map(Class),
        }
    }
}

const KINDS: [(u16, &str); 20] = [
    (1, "A"),
    (2, "NS"),
    (3, "MD"),
    (4, "MF"),
    (5, "CNAME"),
    (6, "SOA"),
    (7, "MB"),
    (8, "MG"),
    (9, "MR"),
    (10, "NULL"),
    (11, "WKS"),
    (12, "PTR"),
    (13, "HINFO"),
    (14, "MINFO"),
    (15, "MX"),
    (16, "TXT"),
    (28, "AAAA"),
    (33, "SRV"),
    (41, "OPT"),
    (256, "URI"),
];

const CLASSES: [(u16, &str); 5] = [(1, "IN"), (2, "CS"), (3, "CH"), (4, "HS"), (255, "Any")];

fn by_name(names: &[(u16, &str)], name: &str) -> Option<u16> {
    let found = names.iter().find(|(_, known)| *known == name);
    found.map(|(number, _)| *number)
}

fn write(names: &[(u16, &str)], number: u16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match names.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => f.write_str(name),
        None => write!(f, "{number}"),
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&KINDS, self.0, f)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&CLASSES, self.0, f)
    }
}
