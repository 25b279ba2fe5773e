//! Types of TDL: enumerations, flags and structures that the user describes, and the variables of an object of them.

use std::collections::BTreeMap;

use allosaur_api::Error;
use serde_json::Value;

use crate::params::{Params, bytes, mismatch, number};

/// Bytes in front of the members of a structure, which recordings show as zeros.
const STRUCTURE_PREFIX: usize = 6;
/// Bytes of a value of an enumeration; the number is the last four.
const ENUMERATION_BYTES: usize = 5;
/// Bytes of a set of flags; a bit each, the first the lowest.
const FLAGS_BYTES: usize = 6;
/// Most flags of a set.
const FLAGS_MAX: usize = 8 * FLAGS_BYTES;
/// Structures in structures, and variables of an object.
const DEPTH_MAX: usize = 16;
const VARIABLES_MAX: usize = 4096;

/// A type that needs no description: its name and its bytes.
const PRIMITIVES: [(&str, usize, Form); 12] = [
    ("char", 1, Form::Character),
    ("bool", 1, Form::Unsigned),
    ("uint8", 1, Form::Unsigned),
    ("uint16", 2, Form::Unsigned),
    ("uint32", 4, Form::Unsigned),
    ("uint64", 8, Form::Unsigned),
    ("int8", 1, Form::Signed),
    ("int16", 2, Form::Signed),
    ("int32", 4, Form::Signed),
    ("int64", 8, Form::Signed),
    ("float", 4, Form::Float),
    ("double", 8, Form::Float),
];

/// How a value of a primitive type is written in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Character,
    Unsigned,
    Signed,
    Float,
}

/// A type that the user describes.
#[derive(Clone, Debug)]
enum Definition {
    Enumeration(Vec<(String, i32)>),
    Flags(Vec<String>),
    Structure(Vec<(String, String)>),
}

/// What is written for a variable.
#[derive(Clone, Debug)]
enum Kind {
    Primitive(Form),
    Enumeration(Vec<(String, i32)>),
    Flags(Vec<String>),
}

/// The types of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Types(BTreeMap<String, Definition>);

impl Types {
    /// Reads `meta_data`.
    ///
    /// # Errors
    /// When an entry is wrong, or two have one name or identifier.
    pub(super) fn parse(list: &[Value]) -> Result<Types, Error> {
        let mut types = Types::default();
        let mut identifiers = Vec::new();
        for entry in list {
            let params = Params::object(entry, "tdl.TdlMetaEntry")?;
            let name = params.string_or("name", "")?;
            params.only_in(
                &format!("type {name} of meta_data"),
                &["name", "type", "data"],
            )?;
            let kind = params.string_or("type", "")?;
            let data = params.get("data").unwrap_or(&Value::Null);
            let data = Params::object(data, "tdl.TdlMetaData")?;
            let place = format!("data of type {name} of meta_data");
            data.only_in(&place, &["luid", "entries"])?;
            let identifier = luid(data)?;
            let definition = definition(kind, data)
                .map_err(|error| Error::execution(format!("type {name} of meta_data: {error}")))?;
            if identifiers.contains(&identifier) {
                let message =
                    format!("type {name} of meta_data has the luid of another: write its own");
                return Err(Error::execution(message));
            }
            identifiers.push(identifier);
            if name.is_empty() || types.0.insert(name.to_owned(), definition).is_some() {
                let message = format!(
                    "a type of meta_data is called '{name}': names must be there, each once"
                );
                return Err(Error::execution(message));
            }
        }
        Ok(types)
    }

    /// The variables of an object of a type, and their bytes, all zeros.
    ///
    /// # Errors
    /// When the type, or one in it, is not there.
    pub(super) fn object(&self, name: &str, kind: &str) -> Result<Object, Error> {
        if !self.0.contains_key(kind) && primitive(kind).is_none() {
            return Err(Error::execution(format!(
                "Object type {kind} is not primitive and not present in meta"
            )));
        }
        let mut object = Object::default();
        self.add(name, kind, 0, &mut object)?;
        Ok(object)
    }

    fn add(&self, path: &str, kind: &str, depth: usize, object: &mut Object) -> Result<(), Error> {
        if depth > DEPTH_MAX || object.variables.len() >= VARIABLES_MAX {
            return Err(Error::execution(format!(
                "variable {path} is too deep or one too many: a type may not have itself in it, an \
                 object at most {VARIABLES_MAX} variables"
            )));
        }
        let (kind, size) = match (primitive(kind), self.0.get(kind)) {
            (Some((size, form)), _) => (Kind::Primitive(form), size),
            (None, Some(Definition::Enumeration(entries))) => {
                (Kind::Enumeration(entries.clone()), ENUMERATION_BYTES)
            }
            (None, Some(Definition::Flags(names))) => (Kind::Flags(names.clone()), FLAGS_BYTES),
            (None, Some(Definition::Structure(members))) => {
                object
                    .bytes
                    .resize(object.bytes.len() + STRUCTURE_PREFIX, 0);
                for (name, kind) in members {
                    self.add(&format!("{path}.{name}"), kind, depth + 1, object)?;
                }
                return Ok(());
            }
            (None, None) => {
                let message = format!("type {kind} of variable {path} is not in meta_data");
                return Err(Error::execution(message));
            }
        };
        let at = object.bytes.len();
        object.bytes.resize(at + size, 0);
        object.variables.push(Variable {
            path: path.to_owned(),
            at,
            size,
            kind,
        });
        Ok(())
    }
}

fn primitive(name: &str) -> Option<(usize, Form)> {
    let found = PRIMITIVES.iter().find(|(other, ..)| *other == name);
    found.map(|&(_, size, form)| (size, form))
}

/// The identifier of a type.
pub(super) fn luid(params: Params<'_>) -> Result<[u8; 16], Error> {
    let value = params.get("luid").unwrap_or(&Value::Null);
    match value.is_null() {
        true => Ok([0; 16]),
        false => bytes(value, "[16]uint8"),
    }
}

fn definition(kind: &str, data: Params<'_>) -> Result<Definition, Error> {
    let entries = data.list("entries", "[]tdl.TdlMetaEntry")?;
    let entries = entries.map_or(&[][..], Vec::as_slice);
    let fields = |entry: &Value| -> Result<(String, Value), Error> {
        let params = Params::object(entry, "tdl.TdlMetaEntry")?;
        let name = params.string_or("name", "")?.to_owned();
        let rest = params.get("value").or(params.get("type"));
        Ok((name, rest.cloned().unwrap_or_default()))
    };
    match kind {
        "enum_def" => {
            let entries = entries.iter().map(|entry| {
                let (name, value) = fields(entry)?;
                let number = value.as_i64().and_then(|value| i32::try_from(value).ok());
                let number = number.ok_or_else(|| mismatch(&value, "int32"))?;
                Ok((name, number))
            });
            entries
                .collect::<Result<_, _>>()
                .map(Definition::Enumeration)
        }
        "flag_def" if entries.len() > FLAGS_MAX => Err(Error::execution(format!(
            "{} flags are more than {FLAGS_MAX}",
            entries.len()
        ))),
        "flag_def" => {
            let names = entries.iter().map(|entry| {
                let name = entry.as_str().map(str::to_owned);
                name.ok_or_else(|| mismatch(entry, "string"))
            });
            names.collect::<Result<_, _>>().map(Definition::Flags)
        }
        "type_def" => {
            let members = entries.iter().map(|entry| {
                let (name, kind) = fields(entry)?;
                let kind = kind.as_str().map(str::to_owned);
                let kind = kind.ok_or_else(|| mismatch(&kind_of(entry), "string"))?;
                Ok((name, kind))
            });
            members.collect::<Result<_, _>>().map(Definition::Structure)
        }
        other => Err(Error::execution(format!(
            "its type is '{other}': write enum_def, flag_def or type_def"
        ))),
    }
}

fn kind_of(entry: &Value) -> Value {
    entry["type"].clone()
}

/// A variable of an object.
#[derive(Clone, Debug)]
struct Variable {
    path: String,
    at: usize,
    size: usize,
    kind: Kind,
}

/// An object as it is in messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    pub(super) bytes: Vec<u8>,
    variables: Vec<Variable>,
}

impl Object {
    /// A variable by its path.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn variable(&self, path: &str) -> Result<usize, Error> {
        let index = self.variables.iter().position(|one| one.path == path);
        index.ok_or_else(|| Error::execution(format!("There is no such variable {path}")))
    }

    /// Sets a variable to a value of JSON: a number, a character, the name of an entry, or names of flags.
    ///
    /// # Errors
    /// When it is no value of its type.
    pub(super) fn set(&mut self, variable: usize, value: &Value) -> Result<(), Error> {
        let Variable {
            path,
            at,
            size,
            kind,
        } = &self.variables[variable];
        let bits = bits_of(kind, *size, value)
            .map_err(|error| Error::execution(format!("value of {path}: {error}")))?;
        let bytes = bits.to_be_bytes();
        self.bytes[*at..at + size].copy_from_slice(&bytes[8 - size..]);
        Ok(())
    }

    /// Writes what an engine gave at its offset within a variable; a text that an enumeration or a
    /// set of flags has is its value. Returns whether it is a value.
    pub(super) fn write(&mut self, variable: usize, offset: usize, given: &[u8]) -> bool {
        let Variable { at, size, kind, .. } = &self.variables[variable];
        let (at, size) = (*at, *size);
        let text = std::str::from_utf8(given)
            .unwrap_or_default()
            .trim_end_matches('\0');
        let value = match kind {
            Kind::Primitive(_) => None,
            _ => bits_of(kind, size, &Value::from(text)).ok(),
        };
        if let Some(bits) = value {
            self.bytes[at..at + size].copy_from_slice(&bits.to_be_bytes()[8 - size..]);
            return true;
        }
        let fits = offset + given.len() <= size;
        if fits {
            self.bytes[at + offset..at + offset + given.len()].copy_from_slice(given);
        }
        fits
    }
}

/// The bits of a value, of which the low `size` bytes are written.
fn bits_of(kind: &Kind, size: usize, value: &Value) -> Result<u64, Error> {
    let unknown = |name: &str| Error::execution(format!("there is no {name}"));
    match kind {
        Kind::Enumeration(entries) => {
            let name = value.as_str().ok_or_else(|| mismatch(value, "string"))?;
            let entry = entries.iter().find(|(other, _)| other == name);
            entry
                .map(|(_, number)| i64::from(*number) as u64 & 0xffff_ffff)
                .ok_or_else(|| unknown(name))
        }
        Kind::Flags(names) => {
            let one = std::slice::from_ref(value);
            let list = value.as_array().map_or(one, Vec::as_slice);
            let flag = |item: &Value| {
                let name = item.as_str().ok_or_else(|| mismatch(item, "string"))?;
                let place = names.iter().position(|other| other == name);
                place.map(|place| 1 << place).ok_or_else(|| unknown(name))
            };
            let flags = list.iter().map(flag);
            flags.sum::<Result<u64, _>>()
        }
        Kind::Primitive(Form::Character) => match value.as_str().map(str::as_bytes) {
            Some([one]) => Ok(u64::from(*one)),
            Some(_) => Err(Error::execution("write one character")),
            None => number::<u8>(value, "uint8").map(u64::from),
        },
        Kind::Primitive(Form::Unsigned) => {
            let number = match value {
                Value::Bool(value) => u64::from(*value),
                value => number(value, &format!("uint{}", 8 * size))?,
            };
            let fits = size == 8 || number < 1 << (8 * size);
            let wanted = format!("uint{}", 8 * size);
            fits.then_some(number)
                .ok_or_else(|| mismatch(value, &wanted))
        }
        Kind::Primitive(Form::Signed) => {
            let wanted = format!("int{}", 8 * size);
            let number = value.as_i64().ok_or_else(|| mismatch(value, &wanted))?;
            let unused = 64 - 8 * size;
            let fits = number << unused >> unused == number;
            fits.then_some(number as u64)
                .ok_or_else(|| mismatch(value, &wanted))
        }
        Kind::Primitive(Form::Float) => {
            let number = value.as_f64().ok_or_else(|| mismatch(value, "float64"))?;
            Ok(match size {
                4 => u64::from((number as f32).to_bits()),
                _ => number.to_bits(),
            })
        }
    }
}
