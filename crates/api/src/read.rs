//! Reads typed requests out of JSON, as strictly as [`Fields`](crate::Fields) does.
//!
//! Serde's derive says what a request has; this is the deserializer beneath it. What is right costs
//! no text: the names of the objects that a wrong field is in are put together on the way out. How an
//! error is worded is a matter of each server: a [`ReadError`] says it.

use std::fmt::Display;
use std::marker::PhantomData;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as DeError, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

use crate::fields::{FieldError, Fields, type_error, whole_signed, whole_unsigned};

/// What may be wrong with a request, in the words of a server.
pub trait ReadError: DeError {
    /// A value has another type than `expected`, which is called `name` where its type has a name: what
    /// `#[serde(rename)]` says.
    fn other_type(value: &Value, expected: &'static str, name: Option<&'static str>) -> Self;

    /// A number is not in the range of its type, `expected`.
    fn out_of_range(value: &Value, max: u64, expected: &'static str) -> Self;

    /// Whether `null` in an object whose keys are data is a value; else it is as if it were missing.
    const HAS_NULLS: bool = false;

    /// Whether a whole number may be written as 20.0, as Python writes the result of a division.
    const TAKES_FRACTIONS_OF_ZERO: bool = true;

    /// The same error, of what is in a field, or in a place of a list: `[3]`.
    #[must_use]
    fn within(self, outer: &str) -> Self;
}

/// Reads a type out of an object. What it does not have is not looked at, unless it says
/// `#[serde(deny_unknown_fields)]`.
///
/// # Errors
/// The first thing that is wrong.
pub fn read<'v, T: Deserialize<'v>, E: ReadError>(map: &'v Map<String, Value>) -> Result<T, E> {
    T::deserialize(Params {
        map,
        error: PhantomData,
    })
}

/// Reads a type out of any value.
///
/// # Errors
/// The first thing that is wrong.
pub fn read_value<'v, T: Deserialize<'v>, E: ReadError>(value: &'v Value) -> Result<T, E> {
    T::deserialize(Strict {
        value,
        in_list: false,
        name: None,
        error: PhantomData,
    })
}

impl<'a> Fields<'a> {
    /// All fields at once, as a struct that derives `Deserialize`. Errors are those that reading each
    /// of them would give; fields that the struct does not have are not looked at.
    pub fn read<T: Deserialize<'a>>(&self) -> Result<T, FieldError> {
        let read = read(self.map);
        read.map_err(|error: FieldError| match self.path.trim_end_matches('.') {
            "" => error,
            outer => error.within(outer),
        })
    }
}

/// A request's parameters, to be deserialized.
struct Params<'de, E> {
    map: &'de Map<String, Value>,
    error: PhantomData<E>,
}

/// A value within them.
struct Strict<'de, E> {
    value: &'de Value,
    /// In a list, a number out of range is told as one of another type.
    in_list: bool,
    /// What its type is called.
    name: Option<&'static str>,
    error: PhantomData<E>,
}

impl ReadError for FieldError {
    fn other_type(value: &Value, expected: &'static str, _: Option<&'static str>) -> FieldError {
        type_error(String::new(), value, expected)
    }

    fn out_of_range(value: &Value, max: u64, expected: &'static str) -> FieldError {
        FieldError::custom(format_args!(
            "is {value}; it must be at most {max} ('{expected}')"
        ))
    }

    fn within(self, outer: &str) -> FieldError {
        let join = |inner: String| match inner.as_str() {
            "" => outer.to_owned(),
            list if list.starts_with('[') => format!("{outer}{list}"),
            _ => format!("{outer}.{inner}"),
        };
        match self {
            FieldError::Missing { name } => FieldError::Missing { name: join(name) },
            FieldError::Type {
                name,
                found,
                expected,
            } => FieldError::Type {
                name: join(name),
                found,
                expected,
            },
            FieldError::Value { name, problem } => FieldError::Value {
                name: join(name),
                problem,
            },
        }
    }
}

impl DeError for FieldError {
    fn custom<T: Display>(problem: T) -> FieldError {
        FieldError::Value {
            name: String::new(),
            problem: problem.to_string(),
        }
    }

    fn missing_field(name: &'static str) -> FieldError {
        FieldError::Missing {
            name: name.to_owned(),
        }
    }

    fn unknown_variant(given: &str, choices: &'static [&'static str]) -> FieldError {
        let list: Vec<String> = choices.iter().map(|choice| format!("'{choice}'")).collect();
        let list = list.join(", ");
        FieldError::custom(format_args!("can only be one of [{list}], not '{given}'"))
    }

    fn invalid_value(given: Unexpected<'_>, expected: &dyn serde::de::Expected) -> FieldError {
        FieldError::custom(format_args!("is {given}; it must be {expected}"))
    }
}

impl<'de, E: ReadError> Deserializer<'de> for Params<'de, E> {
    type Error = E;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        visitor.visit_map(NamedFields {
            map: self.map,
            names: fields,
            known: fields.iter(),
            others: self.map.keys(),
            next: None,
            error: PhantomData,
        })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_map(AllFields {
            entries: self.map.iter(),
            next: None,
            error: PhantomData,
        })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, E> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, E: ReadError> Strict<'de, E> {
    fn wrong(self, expected: &'static str) -> E {
        E::other_type(self.value, expected, self.name)
    }

    fn unsigned(self, max: u64, expected: &'static str) -> Result<u64, E> {
        let number = match E::TAKES_FRACTIONS_OF_ZERO {
            true => whole_unsigned(self.value),
            false => self.value.as_u64(),
        };
        match number {
            Some(number) if number <= max => Ok(number),
            Some(_) if !self.in_list => Err(E::out_of_range(self.value, max, expected)),
            _ => Err(self.wrong(expected)),
        }
    }

    fn object(self) -> Result<Params<'de, E>, E> {
        let map = self.value.as_object().ok_or_else(|| self.wrong("object"))?;
        Ok(Params {
            map,
            error: PhantomData,
        })
    }

    fn text(self) -> Result<&'de str, E> {
        self.value.as_str().ok_or_else(|| self.wrong("string"))
    }
}

impl<'de, E: ReadError> Deserializer<'de> for Strict<'de, E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Object(_) => self.object()?.deserialize_any(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        let value = self.value.as_bool().ok_or_else(|| self.wrong("boolean"))?;
        visitor.visit_bool(value)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_u64(self.unsigned(u8::MAX.into(), "byte")?)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_u64(self.unsigned(u16::MAX.into(), "uint16")?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_u64(self.unsigned(u32::MAX.into(), "uint32")?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_u64(self.unsigned(u64::MAX, "uint64")?)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        let number = match E::TAKES_FRACTIONS_OF_ZERO {
            true => whole_signed(self.value),
            false => self.value.as_i64(),
        };
        let number = number.ok_or_else(|| self.wrong("int"))?;
        visitor.visit_i64(number)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        let number = self.value.as_f64().ok_or_else(|| self.wrong("double"))?;
        visitor.visit_f64(number)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, E> {
        let name = Some(self.name.unwrap_or(name));
        visitor.visit_newtype_struct(Strict { name, ..self })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("array"))?;
        visitor.visit_seq(Elements {
            left: list.iter(),
            count: 0,
            error: PhantomData,
        })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, E> {
        let list = self.value.as_array();
        if list.is_some_and(|list| list.len() != length) {
            let elements = if length == 1 { "element" } else { "elements" };
            let length = match length {
                1 => "one".to_owned(),
                more => more.to_string(),
            };
            let problem = format_args!("must be a list of exactly {length} {elements}");
            return Err(E::custom(problem));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.object()?.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        let name = Some(self.name.unwrap_or(name));
        let object = Strict { name, ..self }.object()?;
        object.deserialize_struct("", fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        visitor.visit_enum(Choice {
            text: self.text()?,
            error: PhantomData,
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u128 f32 char bytes byte_buf unit unit_struct tuple_struct identifier
    }
}

/// The fields that a struct has, in its order, then the names of others, for a struct that refuses them.
/// `null` is the same as missing.
struct NamedFields<'de, E> {
    map: &'de Map<String, Value>,
    names: &'static [&'static str],
    known: std::slice::Iter<'static, &'static str>,
    others: serde_json::map::Keys<'de>,
    next: Option<(&'de str, &'de Value)>,
    error: PhantomData<E>,
}

impl<'de, E: ReadError> MapAccess<'de> for NamedFields<'de, E> {
    type Error = E;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, E> {
        let known = self.known.find_map(|name| {
            let value = self.map.get(*name).filter(|value| !value.is_null())?;
            Some((*name, value))
        });
        let next = known.or_else(|| {
            let names = self.names;
            let name = self.others.find(|name| !names.contains(&name.as_str()))?;
            Some((name.as_str(), &Value::Null))
        });
        let Some((name, _)) = next else {
            return Ok(None);
        };
        self.next = next;
        let key = serde::de::value::BorrowedStrDeserializer::new(name);
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, E> {
        value_of(self.next.take(), seed)
    }
}

/// The fields of a map, all of them; those that are `null` where the server has such.
struct AllFields<'de, E> {
    entries: serde_json::map::Iter<'de>,
    next: Option<(&'de str, &'de Value)>,
    error: PhantomData<E>,
}

impl<'de, E: ReadError> MapAccess<'de> for AllFields<'de, E> {
    type Error = E;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, E> {
        let Some((name, value)) = self
            .entries
            .find(|(_, value)| E::HAS_NULLS || !value.is_null())
        else {
            return Ok(None);
        };
        self.next = Some((name, value));
        let key = serde::de::value::BorrowedStrDeserializer::new(name);
        let read = seed.deserialize(key);
        read.map(Some).map_err(|error: E| error.within(name))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, E> {
        value_of(self.next.take(), seed)
    }
}

/// The value of the field whose name was read before it.
fn value_of<'de, S: DeserializeSeed<'de>, E: ReadError>(
    field: Option<(&str, &'de Value)>,
    seed: S,
) -> Result<S::Value, E> {
    let (name, value) = field.expect("a key comes before its value");
    let strict = Strict {
        value,
        in_list: false,
        name: None,
        error: PhantomData,
    };
    seed.deserialize(strict)
        .map_err(|error: E| error.within(name))
}

/// The elements of a list.
struct Elements<'de, E> {
    left: std::slice::Iter<'de, Value>,
    count: usize,
    error: PhantomData<E>,
}

impl<'de, E: ReadError> SeqAccess<'de> for Elements<'de, E> {
    type Error = E;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, E> {
        let Some(value) = self.left.next() else {
            return Ok(None);
        };
        let place = self.count;
        self.count += 1;
        let strict = Strict {
            value,
            in_list: true,
            name: None,
            error: PhantomData,
        };
        let read = seed.deserialize(strict);
        read.map(Some)
            .map_err(|error: E| error.within(&format!("[{place}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

/// A string that names a choice.
struct Choice<'de, E> {
    text: &'de str,
    error: PhantomData<E>,
}

impl<'de, E: ReadError> EnumAccess<'de> for Choice<'de, E> {
    type Error = E;
    type Variant = Chosen<E>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Chosen<E>), E> {
        let name: serde::de::value::StrDeserializer<'de, E> = self.text.into_deserializer();
        Ok((seed.deserialize(name)?, Chosen(PhantomData)))
    }
}

/// A choice, which says nothing more.
struct Chosen<E>(PhantomData<E>);

impl<'de, E: ReadError> VariantAccess<'de> for Chosen<E> {
    type Error = E;

    fn unit_variant(self) -> Result<(), E> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _seed: S) -> Result<S::Value, E> {
        Err(E::custom("is a choice without fields"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, _visitor: V) -> Result<V::Value, E> {
        Err(E::custom("is a choice without fields"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, E> {
        Err(E::custom("is a choice without fields"))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Asked {
        port_id: u8,
        #[serde(default)]
        force: bool,
        mode: Option<Mode>,
        rate: Rate,
        tx: Vec<u8>,
        version: [Rate; 1],
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Rate {
        value: f64,
        at: Option<u64>,
        sum: Option<i64>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fixed,
        Cyclic,
    }

    fn right() -> Value {
        json!({
            "port_id": 3.0, "mode": "cyclic", "rate": {"value": 2}, "tx": [0, 1.0],
            "version": [{"value": 0.5, "at": 1e3, "sum": null}], "other": 5, "force": null,
        })
    }

    fn read(value: &Value) -> Result<Asked, String> {
        let fields = Fields::new(value.as_object().expect("an object"));
        fields.read().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_right_is_read() {
        let rate = |value, at| Rate {
            value,
            at,
            sum: None,
        };
        let asked = Asked {
            port_id: 3,
            force: false,
            mode: Some(Mode::Cyclic),
            rate: rate(2.0, None),
            tx: vec![0, 1],
            version: [rate(0.5, Some(1000))],
        };
        assert_eq!(read(&right()), Ok(asked));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_it_is_in() {
        for (pointer, value, expected) in [
            ("/port_id", json!(null), "field 'port_id' is missing"),
            (
                "/port_id",
                json!("0"),
                "'port_id' is 'string', expecting 'byte'",
            ),
            (
                "/port_id",
                json!(256),
                "field 'port_id' is 256; it must be at most 255 ('byte')",
            ),
            (
                "/port_id",
                json!(-1),
                "'port_id' is 'int', expecting 'byte'",
            ),
            ("/force", json!(1), "'force' is 'int', expecting 'boolean'"),
            ("/mode", json!(1), "'mode' is 'int', expecting 'string'"),
            (
                "/mode",
                json!("slow"),
                "field 'mode' can only be one of ['fixed', 'cyclic'], not 'slow'",
            ),
            ("/rate", json!([]), "'rate' is 'array', expecting 'object'"),
            ("/rate/value", json!(null), "field 'rate.value' is missing"),
            ("/tx", json!({}), "'tx' is 'object', expecting 'array'"),
            ("/tx/1", json!(256), "'tx[1]' is 'int', expecting 'byte'"),
            ("/tx/1", json!(null), "'tx[1]' is 'null', expecting 'byte'"),
            (
                "/version",
                json!([1, 2]),
                "field 'version' must be a list of exactly one element",
            ),
            (
                "/version/0",
                json!(5),
                "'version[0]' is 'int', expecting 'object'",
            ),
            (
                "/version/0/at",
                json!(1.5),
                "'version[0].at' is 'double', expecting 'uint64'",
            ),
            (
                "/version/0/sum",
                json!("x"),
                "'version[0].sum' is 'string', expecting 'int'",
            ),
        ] {
            let mut asked = right();
            *asked.pointer_mut(pointer).expect("it is there") = value;
            assert_eq!(read(&asked), Err(expected.to_owned()));
        }
    }

    #[test]
    fn of_several_that_are_missing_the_first_is_named() {
        assert_eq!(
            read(&json!({})),
            Err("field 'port_id' is missing".to_owned())
        );
    }
}
