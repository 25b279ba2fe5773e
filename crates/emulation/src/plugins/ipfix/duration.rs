//! Lengths of time as the reference's JSON has them, such as `10s` or `1h30m`.

use allosaur_api::Error;
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// The units, those that begin with another's letter first.
const UNITS: [(&str, Nanos); 8] = [
    ("ns", 1),
    ("us", MICROSECOND),
    ("µs", MICROSECOND),
    ("μs", MICROSECOND),
    ("ms", MILLISECOND),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// Reads a length of time; what is longer than 292 years is cut.
///
/// # Errors
/// When it is none.
pub(super) fn parse(text: &str) -> Result<Nanos, Error> {
    let invalid = || Error::execution(format!("time: invalid duration \"{text}\""));
    if text == "0" {
        return Ok(0);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        if unit.is_empty() {
            let message = format!("time: missing unit in duration \"{text}\"");
            return Err(Error::execution(message));
        }
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, nanos) = known.ok_or_else(|| {
            Error::execution(format!(
                "time: unknown unit \"{unit}\" in duration \"{text}\""
            ))
        })?;
        total += number * *nanos as f64;
        rest = behind;
    }
    Ok((total as Nanos).min(i64::MAX as Nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_sums_of_units() {
        assert_eq!(parse("10s"), Ok(10 * SECOND));
        assert_eq!(parse("1h30m"), Ok(5400 * SECOND));
        assert_eq!(parse("1.5s2ms"), Ok(1_502 * MILLISECOND));
        assert_eq!(parse("0"), Ok(0));
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        let message = |text| parse(text).map_err(|error| error.to_string());
        for text in ["", "x", "s", "-1s", "1.2.3s"] {
            let expected = format!("time: invalid duration \"{text}\"");
            assert_eq!(message(text), Err(expected), "{text}");
        }
        let missing = "time: missing unit in duration \"5\"".to_owned();
        assert_eq!(message("5"), Err(missing));
        let unknown = "time: unknown unit \"y\" in duration \"5y\"".to_owned();
        assert_eq!(message("5y"), Err(unknown));
    }
}
