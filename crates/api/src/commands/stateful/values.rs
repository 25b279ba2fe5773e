//! Values as the words of stateful traffic have them: numbers, flags, lists.

use serde_json::Value;

use crate::fields::{FieldError, Fields, whole_unsigned};

/// A number from 0 on.
pub(crate) fn number(fields: &Fields<'_>, name: &str) -> Result<u64, FieldError> {
    let value = fields.value(name)?;
    match whole_unsigned(value) {
        Some(number) => Ok(number),
        None => Err(fields.bad(
            name,
            format!("is {value}; it must be a whole number from 0 on"),
        )),
    }
}

/// A number from 0 on that has 32 bits.
pub(crate) fn number32(fields: &Fields<'_>, name: &str) -> Result<u32, FieldError> {
    let number = number(fields, name)?;
    u32::try_from(number).map_err(|_| {
        let problem = format!("is {number}; it must be at most {}", u32::MAX);
        fields.bad(name, problem)
    })
}

/// A length of time from 0 on, with or without a fraction.
pub(crate) fn duration(fields: &Fields<'_>, name: &str) -> Result<f64, FieldError> {
    let duration = fields.double(name)?;
    if duration >= 0.0 {
        return Ok(duration);
    }
    Err(fields.bad(name, format!("is {duration}; it must be at least 0")))
}

/// Yes or no: a boolean, or 0 or 1 as Python may write it.
pub(crate) fn flag(fields: &Fields<'_>, name: &str) -> Result<bool, FieldError> {
    let value = fields.value(name)?;
    match (value.as_bool(), whole_unsigned(value)) {
        (Some(flag), _) => Ok(flag),
        (None, Some(number @ (0 | 1))) => Ok(number == 1),
        _ => Err(fields.bad(name, format!("is {value}; it must be true or false"))),
    }
}

/// The same; missing is no.
pub(crate) fn flag_or_no(fields: &Fields<'_>, name: &str) -> Result<bool, FieldError> {
    Ok(fields.optional(name, flag)?.unwrap_or(false))
}

/// Numbers from 0 to 255.
pub(crate) fn bytes(fields: &Fields<'_>, name: &str) -> Result<Vec<u8>, FieldError> {
    let numbers = fields.uint_array(name, 255, "byte")?;
    Ok(numbers.into_iter().map(|number| number as u8).collect())
}

/// A text of its own.
pub(crate) fn text(fields: &Fields<'_>, name: &str) -> Result<String, FieldError> {
    fields.string(name).map(str::to_owned)
}

/// Refuses the first field that is none of these, and names them all.
pub(crate) fn refuse_unknown(fields: &Fields<'_>, known: &[&str]) -> Result<(), FieldError> {
    match fields.names().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let problem = format!("is not known; there are {}", known.join(", "));
            Err(fields.bad(name, problem))
        }
    }
}

/// A list of strings; a missing one is empty.
pub(crate) fn strings<'a>(fields: &Fields<'a>, name: &str) -> Result<Vec<&'a str>, FieldError> {
    let Some(values) = fields.optional(name, Fields::array)? else {
        return Ok(Vec::new());
    };
    let string = |(i, value): (usize, &'a Value)| {
        let problem = || fields.bad(name, format!("has at place {i} no string, but {value}"));
        value.as_str().ok_or_else(problem)
    };
    values.iter().enumerate().map(string).collect()
}

/// Each object of a list, read by `read`.
pub(crate) fn objects<'a, T>(
    fields: &Fields<'a>,
    name: &str,
    path: &str,
    read: impl Fn(&Fields<'a>) -> Result<T, FieldError>,
) -> Result<Vec<T>, FieldError> {
    let values = fields.array(name)?.iter().enumerate();
    let object = |(i, value): (usize, &'a Value)| {
        // The path is only made for what is wrong: lists are long.
        let map = value.as_object().map(Fields::new);
        let quick = map.map(|fields| read(&fields));
        match quick {
            Some(Ok(object)) => Ok(object),
            _ => Fields::of(value, &format!("{path}[{i}]")).and_then(|fields| read(&fields)),
        }
    };
    values.map(object).collect()
}
