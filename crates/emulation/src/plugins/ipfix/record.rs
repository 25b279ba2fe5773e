//! Templates and records (RFC 7011, section 3.4; RFC 3954, sections 5 and 6): fields, their bytes, and the engines that
//! change them.

use allosaur_api::Error;
use serde_json::Value;

use crate::field_engine::{FieldEngines, Random};
use crate::params::{Params, byte_list, failed_check, mismatch};

/// The length of a field that says how long it is in each record (RFC 7011, section 7).
const VARIABLE: u16 = 0xffff;
/// The bit of a type whose enterprise follows.
const ENTERPRISE: u16 = 0x8000;
/// Most fields of a template.
const FIELDS_MAX: usize = 4096;
/// Bytes in front of a variable field that is longer than one can say in a byte.
const LONG_PREFIX: usize = 3;

/// The format of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// NetFlow version 9 (RFC 3954).
    Netflow9,
    /// IPFIX (RFC 7011).
    Ipfix,
}

/// One field of a template.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    kind: u16,
    length: u16,
    enterprise: u32,
    /// Where its bytes begin in a record of fixed length.
    at: usize,
    /// What changes it: engines of `Records::engines`, each with where it writes.
    engines: Vec<(usize, usize)>,
}

/// Makes records of one template, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Records {
    fields: Vec<Field>,
    engines: FieldEngines,
    /// The fields of fixed length, as they were in the last record.
    record: Vec<u8>,
    /// What an engine of a variable field writes to.
    scratch: Vec<u8>,
    longest: usize,
}

impl Records {
    /// Reads `fields` and `engines` of a generator.
    ///
    /// # Errors
    /// When one is wrong, or the version does not have it.
    pub(super) fn parse(params: Params<'_>, version: Version) -> Result<Records, Error> {
        let list = params.list("fields", "[]*ipfix.IPFixField")?;
        let list = list.ok_or_else(|| failed_check("IPFixGenParams", "Fields", "required"))?;
        if list.len() > FIELDS_MAX {
            let message = format!("{} fields are more than {FIELDS_MAX}", list.len());
            return Err(Error::execution(message));
        }
        let mut records = Records {
            fields: Vec::with_capacity(list.len()),
            engines: FieldEngines::default(),
            record: Vec::new(),
            scratch: Vec::new(),
            longest: 0,
        };
        for value in list {
            records.add_field(value, version)?;
        }
        records.add_engines(params.get("engines").unwrap_or(&Value::Null))?;
        let lengths = records.fields.iter().map(|field| match field.length {
            VARIABLE => LONG_PREFIX + records.variable_bytes_max(field),
            length => usize::from(length),
        });
        records.longest = lengths.sum();
        Ok(records)
    }

    fn add_field(&mut self, value: &Value, version: Version) -> Result<(), Error> {
        if !value.is_object() {
            return Err(mismatch(value, "ipfix.IPFixField"));
        }
        let params = Params::new(value);
        params.only(&["name", "type", "length", "enterprise_number", "data"])?;
        let name = params.string_or("name", "")?;
        let (kind, length): (u16, u16) =
            (params.number_or("type", 0)?, params.number_or("length", 0)?);
        let enterprise = params.number_or("enterprise_number", 0)?;
        let data = params.get("data").map(byte_list).transpose()?;
        let data = data.unwrap_or_default();
        let refuse = |message: String| Err(Error::execution(message));
        for (value, field) in [(name.len(), "Name"), (kind.into(), "Type")] {
            if value == 0 {
                return Err(failed_check("IPFixField", field, "required"));
            }
        }
        if version == Version::Netflow9 {
            if kind & ENTERPRISE != 0 {
                return refuse(format!(
                    "NetFlow version 9 does not support enterprise field {name}"
                ));
            }
            if length == VARIABLE {
                return refuse(format!(
                    "NetFlow version 9 does not support var len field {name}"
                ));
            }
        }
        if length == VARIABLE && !data.is_empty() {
            return refuse(format!("variable length field {name} has data"));
        }
        if length != VARIABLE && data.len() != usize::from(length) {
            return refuse(format!(
                "Field {name} data size differs from declared field length {length}"
            ));
        }
        let at = self.record.len();
        self.record.extend_from_slice(&data);
        self.fields.push(Field {
            name: name.to_owned(),
            kind,
            length,
            enterprise,
            at,
            engines: Vec::new(),
        });
        Ok(())
    }

    fn add_engines(&mut self, list: &Value) -> Result<(), Error> {
        self.engines = FieldEngines::parse(list).map_err(|error| {
            Error::execution(format!("could not create engine manager: {error}"))
        })?;
        for engine in 0..self.engines.len() {
            let name = self.engines.name(engine);
            let field = self.fields.iter_mut().find(|field| field.name == name);
            let field = field.ok_or_else(|| {
                Error::execution(format!("Got engine for unexisting field {name}"))
            })?;
            let (offset, size) = self.engines.place(engine);
            let fits = offset + size <= usize::from(field.length);
            // As in the reference, an engine that would write past its field writes nothing.
            match field.length {
                VARIABLE => field.engines.push((engine, 0)),
                _ if fits => field.engines.push((engine, field.at + offset)),
                _ => {}
            }
            if field.length == VARIABLE {
                self.scratch.resize(self.scratch.len().max(size), 0);
            }
        }
        let empty = |field: &&Field| field.length == VARIABLE && field.engines.is_empty();
        match self.fields.iter().find(empty) {
            Some(field) => {
                let message = format!("No engine for var len field {}", field.name);
                Err(Error::execution(message))
            }
            None => Ok(()),
        }
    }

    fn variable_bytes_max(&self, field: &Field) -> usize {
        let sizes = field
            .engines
            .iter()
            .map(|(engine, _)| self.engines.place(*engine).1);
        sizes.max().unwrap_or(0)
    }

    /// How many fields there are.
    pub(super) fn fields(&self) -> usize {
        self.fields.len()
    }

    /// How many engines there are.
    pub(super) fn engines(&self) -> usize {
        self.engines.len()
    }

    /// The most bytes of a record.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether records differ in length.
    pub(super) fn is_variable(&self) -> bool {
        self.fields.iter().any(|field| field.length == VARIABLE)
    }

    /// Appends the description of the fields from `from` up to `to`.
    pub(super) fn describe(&self, out: &mut Vec<u8>) {
        for field in &self.fields {
            out.extend_from_slice(&field.kind.to_be_bytes());
            out.extend_from_slice(&field.length.to_be_bytes());
            if field.kind & ENTERPRISE != 0 {
                out.extend_from_slice(&field.enterprise.to_be_bytes());
            }
        }
    }

    /// Appends the next record.
    pub(super) fn write_next(&mut self, random: &mut impl Random, out: &mut Vec<u8>) {
        if self.engines.is_empty() {
            out.extend_from_slice(&self.record);
            return;
        }
        for field in &self.fields {
            if field.length != VARIABLE {
                for &(engine, at) in &field.engines {
                    self.engines.next(engine, random, &mut self.record[at..]);
                }
                let end = field.at + usize::from(field.length);
                out.extend_from_slice(&self.record[field.at..end]);
                continue;
            }
            let mut bytes = 0;
            for &(engine, _) in &field.engines {
                bytes = self.engines.next(engine, random, &mut self.scratch);
            }
            match u8::try_from(bytes) {
                Ok(short) if short < u8::MAX => out.push(short),
                _ => {
                    out.push(u8::MAX);
                    out.extend_from_slice(&(bytes as u16).to_be_bytes());
                }
            }
            out.extend_from_slice(&self.scratch[..bytes]);
        }
    }
}
