//! Reads what requests to emulated clients have: types by serde's derive, as all requests of the RPC, and
//! values as TRex's EMU server has them. Addresses are lists of bytes, of which those that are missing
//! are zero, and `null` stands for nothing.
//!
//! The texts of errors are that server's, too, so that scripts that compare them still work. They have
//! its names of types, which ours say by `#[serde(rename)]`.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

#[cfg(feature = "schema")]
use allosaur_api::json_schema::{JsonSchema, Schema, SchemaGenerator, json_schema};
use allosaur_api::{Error, ReadError, read};
use allosaur_packet::MacAddress;
use serde::de::{Deserializer, Error as DeError, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// Reads the parameters of a command; what is no object has none.
///
/// # Errors
/// When one has another type.
pub fn params<'v, T: Deserialize<'v>>(params: &'v Value) -> Result<T, Error> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    let map = params.as_object().unwrap_or(&NONE);
    read::read(map).map_err(|misread: Misread| misread.into())
}

/// Reads a value.
///
/// # Errors
/// When it has another type.
pub fn value<'v, T: Deserialize<'v>>(value: &'v Value) -> Result<T, Error> {
    read::read_value(value).map_err(|misread: Misread| misread.into())
}

/// What is wrong with a request, in the words of TRex's EMU server.
#[derive(Debug)]
enum Misread {
    Text(String),
    /// A key that nobody knows, where it is, and which there are.
    Unknown {
        name: String,
        place: String,
        known: &'static [&'static str],
    },
}

impl From<Misread> for Error {
    fn from(misread: Misread) -> Error {
        match misread {
            Misread::Text(text) => Error::execution(text),
            Misread::Unknown { name, place, known } => {
                let place = match place.as_str() {
                    "" => place,
                    place => format!(" in {place}"),
                };
                unknown_field(&name, &place, known)
            }
        }
    }
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misread::Text(text) => f.write_str(text),
            Misread::Unknown { name, .. } => write!(f, "json: unknown field \"{name}\""),
        }
    }
}

impl std::error::Error for Misread {}

impl DeError for Misread {
    fn custom<T: fmt::Display>(problem: T) -> Misread {
        Misread::Text(problem.to_string())
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Misread {
        Misread::Unknown {
            name: name.to_owned(),
            place: String::new(),
            known,
        }
    }
}

impl ReadError for Misread {
    const HAS_NULLS: bool = true;
    const TAKES_FRACTIONS_OF_ZERO: bool = false;

    fn other_type(value: &Value, expected: &'static str, name: Option<&'static str>) -> Misread {
        let name = name.unwrap_or(match expected {
            "byte" => "uint8",
            "int" => "int64",
            "boolean" => "bool",
            "double" => "float64",
            "array" => "[]interface {}",
            "object" => "map[string]interface {}",
            other => other,
        });
        Misread::Text(mismatch_text(value, name))
    }

    fn out_of_range(value: &Value, _: u64, expected: &'static str) -> Misread {
        Misread::other_type(value, expected, None)
    }

    fn within(self, outer: &str) -> Misread {
        match self {
            Misread::Unknown { name, place, known } => Misread::Unknown {
                name,
                place: match place.as_str() {
                    "" => outer.to_owned(),
                    inner if inner.starts_with('[') => format!("{outer}{inner}"),
                    inner => format!("{outer}.{inner}"),
                },
                known,
            },
            text => text,
        }
    }
}

/// The error of a value that has another type than `wanted`, by that server's name of it.
pub fn mismatch(value: &Value, wanted: &str) -> Error {
    Error::execution(mismatch_text(value, wanted))
}

/// Its text. A number is told where a number was wanted.
fn mismatch_text(value: &Value, wanted: &str) -> String {
    let is_integer = wanted.starts_with("uint") || wanted.starts_with("int");
    let kind = match value {
        Value::Number(number) if is_integer => format!("number {number}"),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    format!("json: cannot unmarshal {kind} into Go value of type {wanted}")
}

/// The error of a field that must be there, or must pass another check, by that server's names.
pub fn failed_check(structure: &str, field: &str, check: &str) -> Error {
    Error::execution(format!(
        "Key: '{structure}.{field}' Error:Field validation for '{field}' failed on the '{check}' tag"
    ))
}

/// The error of a field that nobody knows: the one that was meant, as far as a few wrong letters tell, or all.
/// `place` is where it stands, if that is to be said.
pub(crate) fn unknown_field(name: &str, place: &str, known: &[&str]) -> Error {
    let far = name.chars().count().div_ceil(3);
    let near = known
        .iter()
        .map(|other| (strsim::osa_distance(name, other), other));
    let near = near.min().filter(|(distance, _)| *distance <= far);
    let remedy = match near {
        Some((_, near)) => format!("is it \"{near}\"?"),
        None if known.is_empty() => "leave it out, there are none here".to_owned(),
        None => format!("there are {}", known.join(", ")),
    };
    Error::execution(format!("json: unknown field \"{name}\"{place}: {remedy}"))
}

/// So many values. As in TRex, a shorter list is filled up with zeros, and a longer one is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled<T, const N: usize>(pub [T; N]);

impl<'de, T: Deserialize<'de> + Copy + Default, const N: usize> Deserialize<'de> for Filled<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values<T, const N: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Copy + Default, const N: usize> Visitor<'de> for Values<T, N> {
            type Value = Filled<T, N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of {N} numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut values = [T::default(); N];
                for value in &mut values {
                    match list.next_element::<Option<T>>()? {
                        Some(given) => *value = given.unwrap_or_default(),
                        None => break,
                    }
                }
                Ok(Filled(values))
            }
        }
        deserializer.deserialize_seq(Values(PhantomData))
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema, const N: usize> JsonSchema for Filled<T, N> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}x{N}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({"type": "array", "items": items, "maxItems": N})
    }
}

/// A type whose lists have a name.
pub trait Listable {
    /// What TRex calls a list of it.
    const LIST: &'static str;
}

impl<T: Listable> Listable for Option<T> {
    const LIST: &'static str = T::LIST;
}

/// A list; in it, `null` is what its type is by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de> + Listable + Default> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Items<T> {
            type Value = Listed<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                list: D,
            ) -> Result<Self::Value, D::Error> {
                let items = Vec::<Option<T>>::deserialize(list)?.into_iter();
                Ok(Listed(items.map(Option::unwrap_or_default).collect()))
            }
        }
        deserializer.deserialize_newtype_struct(T::LIST, Items(PhantomData))
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for Listed<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Vec::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<T>::json_schema(generator)
    }
}

impl Listable for String {
    const LIST: &'static str = "[]string";
}

/// Addresses, which are lists of bytes on the wire.
macro_rules! addresses {
    ($($(#[$doc:meta])+ $name:ident($of:ty), $bytes:literal, $reference:literal;)+) => {$(
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $of);

        impl Default for $name {
            fn default() -> $name {
                $name([0; $bytes].into())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                #[derive(Deserialize)]
                #[serde(rename = $reference)]
                struct Bytes(Filled<u8, $bytes>);
                Bytes::deserialize(deserializer).map(|Bytes(Filled(bytes))| $name(bytes.into()))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.octets().serialize(serializer)
            }
        }

        #[cfg(feature = "schema")]
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                Vec::<u8>::json_schema(generator)
            }
        }

        impl Listable for $name {
            const LIST: &'static str = concat!("[]", $reference);
        }

        impl From<$name> for [u8; $bytes] {
            fn from(address: $name) -> [u8; $bytes] {
                address.0.octets()
            }
        }

        impl From<[u8; $bytes]> for $name {
            fn from(bytes: [u8; $bytes]) -> $name {
                $name(bytes.into())
            }
        }
    )+};
}

addresses! {
    /// A MAC address: six bytes.
    Mac(MacAddress), 6, "core.MACKey";
    /// An IPv4 address: four bytes.
    Ipv4(Ipv4Addr), 4, "core.Ipv4Key";
    /// An IPv6 address: 16 bytes.
    Ipv6(Ipv6Addr), 16, "core.Ipv6Key";
}

/// A number that TRex has in 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename = "float32")]
pub struct Float32(pub f64);

#[cfg(feature = "schema")]
impl JsonSchema for Float32 {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Float32".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        f64::json_schema(generator)
    }
}

/// Plugins by their names, with the init JSON of each, which may be null.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename = "core.MapJsonPlugs")]
pub struct Plugins(pub Map<String, Value>);

#[cfg(feature = "schema")]
impl JsonSchema for Plugins {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Plugins".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": true})
    }
}

/// `true`: the reply of what has nothing to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done;

impl Serialize for Done {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Done {
    fn schema_name() -> Cow<'static, str> {
        "Done".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "boolean", "description": "`true`: it is done."})
    }
}
