//! The JSON of tunables: `c_glob_info`, `s_glob_info`, and `glob_info` of templates.

use serde_json::Value;

use super::values::{bytes, flag, number};
use crate::fields::{FieldError, Fields};

/// The tunables of a side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tunables {
    /// Those that are numbers.
    pub numbers: Vec<Tunable>,
    /// `ipv6.src_msb`.
    pub source_prefix: Option<[u8; 16]>,
    /// `ipv6.dst_msb`.
    pub destination_prefix: Option<[u8; 16]>,
}

/// A tunable that is a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// The object that it is in.
    pub section: String,
    /// Its name there.
    pub name: String,
    /// Its value; yes and no are 1 and 0.
    pub value: u64,
}

impl Tunables {
    /// Reads the object `name` of `fields`, which is at `path`; a missing one is empty.
    pub fn parse(fields: &Fields<'_>, name: &str) -> Result<Tunables, FieldError> {
        let mut tunables = Tunables::default();
        let Some(sections) = fields.optional(name, Fields::object)? else {
            return Ok(tunables);
        };
        for section in sections.names() {
            let Some(values) = sections.optional(section, Fields::object)? else {
                continue;
            };
            for name in values.names().filter(|name| !values.is_missing(name)) {
                match (section, name) {
                    ("ipv6", "src_msb") => tunables.source_prefix = Some(prefix(&values, name)?),
                    ("ipv6", "dst_msb") => {
                        tunables.destination_prefix = Some(prefix(&values, name)?);
                    }
                    _ => tunables.numbers.push(Tunable {
                        section: section.to_owned(),
                        name: name.to_owned(),
                        value: value(&values, name)?,
                    }),
                }
            }
        }
        Ok(tunables)
    }
}

fn value(fields: &Fields<'_>, name: &str) -> Result<u64, FieldError> {
    match fields.value(name)? {
        Value::Bool(_) => flag(fields, name).map(u64::from),
        _ => number(fields, name),
    }
}

fn prefix(fields: &Fields<'_>, name: &str) -> Result<[u8; 16], FieldError> {
    let bytes = bytes(fields, name)?;
    <[u8; 16]>::try_from(bytes).map_err(|bytes| {
        let problem = format!(
            "has {} numbers; it must have 16, from 0 to 255",
            bytes.len()
        );
        fields.bad(name, problem)
    })
}
