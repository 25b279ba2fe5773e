//! Strict reading of JSON objects: each field by name and type, errors that name the field.
//!
//! The rules are TRex's: a missing field and an explicit `null` are the same; integers have a
//! range and are never rounded from fractions, but may be written with a fraction of zero (20.0),
//! as Python writes the result of a division; a `double` accepts integers; a `boolean` does not
//! accept 0 and 1.

use serde_json::{Map, Value};
use thiserror::Error;

/// Why a field could not be read. Displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// The field is missing or `null`.
    #[error("field '{name}' is missing")]
    Missing {
        /// The field, with the objects that it is in: `mode.rate.value`.
        name: String,
    },
    /// The field has another type.
    #[error("'{name}' is '{found}', expecting '{expected}'")]
    Type {
        /// The field.
        name: String,
        /// The type that was given.
        found: &'static str,
        /// The type that belongs there.
        expected: &'static str,
    },
    /// The type is right and the value is not.
    #[error("field '{name}' {problem}")]
    Value {
        /// The field.
        name: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

/// A JSON object whose fields are read one by one.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    pub(crate) map: &'a Map<String, Value>,
    pub(crate) path: String,
}

impl<'a> Fields<'a> {
    /// The fields of a request's `params`.
    pub fn new(map: &'a Map<String, Value>) -> Fields<'a> {
        Fields {
            map,
            path: String::new(),
        }
    }

    /// The fields of any JSON value, which must be an object; `name` is used in errors.
    pub fn of(value: &'a Value, name: &str) -> Result<Fields<'a>, FieldError> {
        let map = value
            .as_object()
            .ok_or_else(|| type_error(name.to_owned(), value, "object"))?;
        Ok(Fields {
            map,
            path: format!("{name}."),
        })
    }

    /// All fields as a JSON object.
    pub fn to_value(&self) -> Value {
        Value::Object(self.map.clone())
    }

    /// A field that may be missing: `read` it if it is there.
    pub fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Self, &str) -> Result<T, FieldError>,
    ) -> Result<Option<T>, FieldError> {
        if self.is_missing(name) {
            return Ok(None);
        }
        read(self, name).map(Some)
    }

    /// A field that was read as one that may be missing, and must be there after all.
    pub fn required<T>(&self, name: &str, read: Option<T>) -> Result<T, FieldError> {
        read.ok_or_else(|| FieldError::Missing {
            name: self.full(name),
        })
    }

    /// Whether the field is missing or `null`.
    pub fn is_missing(&self, name: &str) -> bool {
        matches!(self.map.get(name), None | Some(Value::Null))
    }

    /// The names of all fields that are there.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.map.keys().map(String::as_str)
    }

    /// A value of any type but `null`.
    pub fn value(&self, name: &str) -> Result<&'a Value, FieldError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Err(FieldError::Missing {
                name: self.full(name),
            }),
            Some(value) => Ok(value),
        }
    }

    /// A string.
    pub fn string(&self, name: &str) -> Result<&'a str, FieldError> {
        let value = self.value(name)?;
        value
            .as_str()
            .ok_or_else(|| type_error(self.full(name), value, "string"))
    }

    /// A string out of a set.
    pub fn one_of(&self, name: &str, choices: &[&'static str]) -> Result<&'static str, FieldError> {
        let given = self.string(name)?;
        let found = choices.iter().find(|choice| **choice == given);
        found.copied().ok_or_else(|| {
            let list: Vec<String> = choices.iter().map(|c| format!("'{c}'")).collect();
            self.bad(
                name,
                format!("can only be one of [{}], not '{given}'", list.join(", ")),
            )
        })
    }

    /// `true` or `false`.
    pub fn boolean(&self, name: &str) -> Result<bool, FieldError> {
        let value = self.value(name)?;
        value
            .as_bool()
            .ok_or_else(|| type_error(self.full(name), value, "boolean"))
    }

    /// 0 to 2⁸−1.
    pub fn byte(&self, name: &str) -> Result<u8, FieldError> {
        self.unsigned(name, u8::MAX.into(), "byte").map(|v| v as u8)
    }

    /// 0 to 2¹⁶−1.
    pub fn uint16(&self, name: &str) -> Result<u16, FieldError> {
        self.unsigned(name, u16::MAX.into(), "uint16")
            .map(|v| v as u16)
    }

    /// 0 to 2³²−1.
    pub fn uint32(&self, name: &str) -> Result<u32, FieldError> {
        self.unsigned(name, u32::MAX.into(), "uint32")
            .map(|v| v as u32)
    }

    /// 0 to 2⁶⁴−1.
    pub fn uint64(&self, name: &str) -> Result<u64, FieldError> {
        self.unsigned(name, u64::MAX, "uint64")
    }

    /// −2⁶³ to 2⁶³−1.
    pub fn int(&self, name: &str) -> Result<i64, FieldError> {
        let value = self.value(name)?;
        whole_signed(value).ok_or_else(|| type_error(self.full(name), value, "int"))
    }

    /// Any number.
    pub fn double(&self, name: &str) -> Result<f64, FieldError> {
        let value = self.value(name)?;
        value
            .as_f64()
            .ok_or_else(|| type_error(self.full(name), value, "double"))
    }

    /// An object, to be read further.
    pub fn object(&self, name: &str) -> Result<Fields<'a>, FieldError> {
        Fields::of(self.value(name)?, &self.full(name))
    }

    /// A list.
    pub fn array(&self, name: &str) -> Result<&'a [Value], FieldError> {
        let value = self.value(name)?;
        let array = value.as_array().map(Vec::as_slice);
        array.ok_or_else(|| type_error(self.full(name), value, "array"))
    }

    /// A list of numbers from 0 to `max`.
    pub fn uint_array(
        &self,
        name: &str,
        max: u64,
        expected: &'static str,
    ) -> Result<Vec<u64>, FieldError> {
        let read = |(i, value): (usize, &Value)| {
            let number = whole_unsigned(value).filter(|v| *v <= max);
            number.ok_or_else(|| type_error(format!("{}[{i}]", self.full(name)), value, expected))
        };
        self.array(name)?.iter().enumerate().map(read).collect()
    }

    /// An error about the value of a field: `problem` continues "field 'x' ".
    pub fn bad(&self, name: &str, problem: impl Into<String>) -> FieldError {
        FieldError::Value {
            name: self.full(name),
            problem: problem.into(),
        }
    }

    fn unsigned(&self, name: &str, max: u64, expected: &'static str) -> Result<u64, FieldError> {
        let value = self.value(name)?;
        match whole_unsigned(value) {
            Some(number) if number <= max => Ok(number),
            Some(number) => Err(self.bad(
                name,
                format!("is {number}; it must be at most {max} ('{expected}')"),
            )),
            None => Err(type_error(self.full(name), value, expected)),
        }
    }

    /// The name of a field with the objects that it is in.
    pub(crate) fn full(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }
}

/// A whole number from 0 to 2⁶⁴−1, also one that is written as 20.0 or 1e6. From 2⁵³ on every
/// `double` is whole, so there it is taken as the nearest one that JSON could hold.
pub(crate) fn whole_unsigned(value: &Value) -> Option<u64> {
    let written_as_double = || {
        let number = value.as_f64().filter(|_| value.is_f64())?;
        let fits = number.fract() == 0.0 && (0.0..TWO_TO_63 * 2.0).contains(&number);
        fits.then_some(number as u64)
    };
    value.as_u64().or_else(written_as_double)
}

/// The same from −2⁶³ to 2⁶³−1.
pub(crate) fn whole_signed(value: &Value) -> Option<i64> {
    let written_as_double = || {
        let number = value.as_f64().filter(|_| value.is_f64())?;
        let fits = number.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&number);
        fits.then_some(number as i64)
    };
    value.as_i64().or_else(written_as_double)
}

/// The first number that an `i64` cannot hold. (`i64::MAX as f64` is this too, not `i64::MAX`.)
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

pub(crate) fn type_error(name: String, value: &Value, expected: &'static str) -> FieldError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() || n.is_u64() => "int",
        Value::Number(_) => "double",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    FieldError::Type {
        name,
        found,
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text<T: std::fmt::Debug>(result: Result<T, FieldError>) -> String {
        result.expect_err("the field is wrong").to_string()
    }

    #[test]
    fn missing_and_null_are_the_same() {
        let value = json!({"a": null});
        let fields = Fields::of(&value, "x").expect("an object");
        assert_eq!(text(fields.uint32("a")), "field 'x.a' is missing");
        assert_eq!(text(fields.uint32("b")), "field 'x.b' is missing");
        assert_eq!(fields.optional("a", Fields::uint32), Ok(None));
    }

    #[test]
    fn integers_are_strict() {
        let value = json!({"s": "1", "n": -1, "f": 1.5, "big": 4_294_967_296_u64});
        let map = value.as_object().expect("an object");
        let fields = Fields::new(map);
        assert_eq!(
            text(fields.uint32("s")),
            "'s' is 'string', expecting 'uint32'"
        );
        assert_eq!(text(fields.byte("n")), "'n' is 'int', expecting 'byte'");
        assert_eq!(
            text(fields.uint32("f")),
            "'f' is 'double', expecting 'uint32'"
        );
        assert!(text(fields.uint32("big")).contains("at most 4294967295"));
        assert_eq!(fields.double("n"), Ok(-1.0));
    }

    /// TRex asks whether the number is whole, not how it is written.
    #[test]
    fn whole_numbers_may_have_a_fraction_of_zero() {
        let text_of = r#"{"a": 20.0, "e": 1e3, "zero": -0.0, "minus": -2.0, "half": -1.5,
            "byte": 256.0, "list": [1.0, 2, 3.5], "exact": 9007199254740992.0,
            "most": 18446744073709549568.0, "two_to_64": 18446744073709551616.0,
            "two_to_63": 9223372036854775808.0, "least": -9223372036854775808.0,
            "whole_two_to_63": 9223372036854775808, "whole_two_to_64": 18446744073709551616}"#;
        let value: Value = serde_json::from_str(text_of).expect("JSON");
        let fields = Fields::new(value.as_object().expect("an object"));
        assert_eq!(fields.byte("a"), Ok(20));
        assert_eq!(fields.uint16("e"), Ok(1000));
        assert_eq!(fields.uint32("zero"), Ok(0));
        assert_eq!(fields.uint64("exact"), Ok(1 << 53));
        assert_eq!(fields.uint64("most"), Ok(u64::MAX - 2047));
        assert_eq!(fields.uint64("two_to_63"), Ok(1 << 63));
        assert_eq!(fields.int("minus"), Ok(-2));
        assert_eq!(fields.int("least"), Ok(i64::MIN));
        let wrong = [
            (text(fields.uint64("half")), "'half' is 'double'"),
            (text(fields.int("half")), "'half' is 'double'"),
            (text(fields.uint32("minus")), "'minus' is 'double'"),
            (text(fields.byte("byte")), "'byte' is 256; it must be"),
            (text(fields.uint64("two_to_64")), "'two_to_64' is 'double'"),
            (text(fields.uint64("whole_two_to_64")), "is 'double'"),
            (text(fields.int("two_to_63")), "'two_to_63' is 'double'"),
            (text(fields.int("whole_two_to_63")), "is 'int', expecting"),
            (
                text(fields.uint_array("list", 9, "byte")),
                "'list[2]' is 'double'",
            ),
        ];
        for (found, expected) in wrong {
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn choices_are_listed() {
        let value = json!({"type": "foo"});
        let fields = Fields::new(value.as_object().expect("an object"));
        assert_eq!(
            text(fields.one_of("type", &["raw", "pps"])),
            "field 'type' can only be one of ['raw', 'pps'], not 'foo'"
        );
    }
}
