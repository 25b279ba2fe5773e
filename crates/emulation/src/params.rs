//! The init JSON of plugins, read field by field. Commands of the RPC are read by [`read`](crate::read), which
//! has the texts of errors.

use std::net::Ipv4Addr;

use allosaur_api::Error;
use allosaur_packet::MacAddress;
use serde_json::{Map, Value};

use crate::read::unknown_field;
pub use crate::read::{failed_check, mismatch};

/// The fields of a JSON object, read with their types. What is absent or null has its default.
#[derive(Clone, Copy, Debug)]
pub struct Params<'v>(&'v Value);

impl<'v> Params<'v> {
    /// The parameters in a value; anything that is no object has none.
    pub fn new(value: &'v Value) -> Params<'v> {
        Params(value)
    }

    /// All fields, which must be in an object (or null): `wanted` is the reference's name of it.
    ///
    /// # Errors
    /// When it is something else.
    pub fn object(value: &'v Value, wanted: &str) -> Result<Params<'v>, Error> {
        match value {
            Value::Null | Value::Object(_) => Ok(Params(value)),
            other => Err(mismatch(other, wanted)),
        }
    }

    /// All fields, if it is an object.
    pub fn fields(self) -> Option<&'v Map<String, Value>> {
        self.0.as_object()
    }

    /// A field that is an object of plugins by name.
    ///
    /// # Errors
    /// When it is something else.
    pub fn plugins(self, name: &str) -> Result<Option<&'v Map<String, Value>>, Error> {
        let read = |value: &'v Value| {
            let object = value.as_object();
            object.ok_or_else(|| mismatch(value, "core.MapJsonPlugs"))
        };
        self.get(name).map(read).transpose()
    }

    /// A field that is a list, of the reference's type `wanted`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn list(self, name: &str, wanted: &str) -> Result<Option<&'v Vec<Value>>, Error> {
        let read = |value: &'v Value| {
            let list = value.as_array();
            list.ok_or_else(|| mismatch(value, wanted))
        };
        self.get(name).map(read).transpose()
    }

    /// A field; `None` when it is absent or null.
    pub fn get(self, name: &str) -> Option<&'v Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Refuses fields that nobody knows.
    ///
    /// # Errors
    /// When there is one.
    pub fn only(self, known: &[&str]) -> Result<(), Error> {
        let unknown = self.unknown(known);
        unknown.map_or(Ok(()), |name| Err(unknown_field(name, "", known)))
    }

    /// The same within an init JSON: the error names the `place`, such as `options`.
    ///
    /// # Errors
    /// When there is one.
    pub fn only_in(self, place: &str, known: &[&str]) -> Result<(), Error> {
        let unknown = self.unknown(known);
        unknown.map_or(Ok(()), |name| {
            Err(unknown_field(name, &format!(" in {place}"), known))
        })
    }

    fn unknown(self, known: &[&str]) -> Option<&'v str> {
        let mut names = self.0.as_object()?.keys().map(String::as_str);
        names.find(|name| !known.contains(name))
    }

    /// A field that is a number, of a type such as `float32`; absent it is `default`.
    ///
    /// # Errors
    /// When it has another type.
    pub fn float_or(self, name: &str, wanted: &str, default: f64) -> Result<f64, Error> {
        self.get(name).map_or(Ok(default), |value| {
            value.as_f64().ok_or_else(|| mismatch(value, wanted))
        })
    }

    /// A field that is true or false.
    ///
    /// # Errors
    /// When it has another type.
    pub fn bool_or(self, name: &str, default: bool) -> Result<bool, Error> {
        self.get(name).map_or(Ok(default), |value| {
            value.as_bool().ok_or_else(|| mismatch(value, "bool"))
        })
    }

    /// A field that is a number without sign, of a type such as `uint16`.
    ///
    /// # Errors
    /// When it has another type or does not fit.
    pub fn number_or<N: TryFrom<u64>>(self, name: &str, default: N) -> Result<N, Error> {
        self.get(name).map_or(Ok(default), |value| {
            number(value, &format!("uint{}", 8 * std::mem::size_of::<N>()))
        })
    }

    /// A field that is a number without sign, of a type such as `uint16`; absent or 0 it is `default`.
    ///
    /// # Errors
    /// When it has another type or does not fit.
    pub fn nonzero_or<N: TryFrom<u64> + Default + PartialEq>(
        self,
        name: &str,
        default: N,
    ) -> Result<N, Error> {
        let given = self.number_or(name, N::default())?;
        Ok(if given == N::default() {
            default
        } else {
            given
        })
    }

    /// The field `options` of an init JSON, which may have fields that are `known`, none when it is
    /// absent; `wanted` is the reference's name of its type.
    ///
    /// # Errors
    /// When it is no object, or has another field.
    pub fn options(self, wanted: &str, known: &[&str]) -> Result<Params<'v>, Error> {
        const NONE: &Value = &Value::Null;
        let options = Params::object(self.get("options").unwrap_or(NONE), wanted)?;
        options.only_in("options", known)?;
        Ok(options)
    }

    /// A field that is a list of texts.
    ///
    /// # Errors
    /// When it is something else.
    pub fn strings(self, name: &str) -> Result<Vec<&'v str>, Error> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let items = value
            .as_array()
            .ok_or_else(|| mismatch(value, "[]string"))?;
        let texts = items.iter().map(|item| {
            let text = item.as_str();
            text.ok_or_else(|| mismatch(item, "string"))
        });
        texts.collect()
    }

    /// A field that is a text.
    ///
    /// # Errors
    /// When it is something else.
    pub fn string_or(self, name: &str, default: &'v str) -> Result<&'v str, Error> {
        self.get(name).map_or(Ok(default), |value| {
            value.as_str().ok_or_else(|| mismatch(value, "string"))
        })
    }

    /// A MAC address as a list of six bytes.
    ///
    /// # Errors
    /// When it is something else.
    pub fn mac(self, name: &str) -> Result<Option<MacAddress>, Error> {
        let value = self.get(name);
        let parse = |value| bytes(value, "core.MACKey").map(MacAddress);
        value.map(parse).transpose()
    }

    /// An IPv4 address as a list of four bytes.
    ///
    /// # Errors
    /// When it is something else.
    pub fn ipv4(self, name: &str) -> Result<Option<Ipv4Addr>, Error> {
        let value = self.get(name);
        let parse = |value| bytes::<4>(value, "core.Ipv4Key").map(Ipv4Addr::from);
        value.map(parse).transpose()
    }
}

/// A list of `N` bytes. As in the reference, a shorter list is filled up with zeros, a longer one is cut.
///
/// # Errors
/// When it is no list, or has something else than bytes in it.
pub fn bytes<const N: usize>(value: &Value, wanted: &str) -> Result<[u8; N], Error> {
    let items = value.as_array().ok_or_else(|| mismatch(value, wanted))?;
    let mut bytes = [0; N];
    for (byte, item) in bytes.iter_mut().zip(items) {
        *byte = number(item, "uint8")?;
    }
    Ok(bytes)
}

/// A number without sign; null is zero.
///
/// # Errors
/// When it is something else, or does not fit.
pub fn number<N: TryFrom<u64>>(value: &Value, wanted: &str) -> Result<N, Error> {
    let number = if value.is_null() {
        Some(0)
    } else {
        value.as_u64()
    };
    let number = number.and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| mismatch(value, wanted))
}

/// A list of bytes, of any length.
///
/// # Errors
/// When it is no list, or has something else than bytes in it.
pub fn byte_list(value: &Value) -> Result<Vec<u8>, Error> {
    let items = value.as_array().ok_or_else(|| mismatch(value, "[]uint8"))?;
    items.iter().map(|item| number(item, "uint8")).collect()
}

/// A field that is a list of lists of bytes; none when it is absent.
///
/// # Errors
/// When it is something else.
pub fn byte_lists(params: Params<'_>, name: &str) -> Result<Vec<Vec<u8>>, Error> {
    let lists = params.list(name, "[][]uint8")?.into_iter().flatten();
    lists.map(byte_list).collect()
}
