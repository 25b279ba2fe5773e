//! Values of which requests are made: each request, or each connection, has the next or a random one.
//!
//! What a value is follows from a number alone, that of the request or of the connection. The cores of a
//! port share these numbers out, so that together they use each once.

use allosaur_engine::app::CoreInfo;
use allosaur_engine::rng::mixed;

use super::settings::{HttpSettingsError, HttpValue, HttpValueSource, is_token, refused};

/// Values that a client has at most.
const VALUES_MAX: usize = 100;
/// Texts of a list at most.
const TEXTS_MAX: usize = 65_535;
/// Bytes of a text at most.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Bytes of all texts at most.
const ALL_BYTES_MAX: usize = 16 << 20;
/// The largest number, and its digits.
const NUMBER_MAX: u64 = 999_999_999_999_999_999;
const DIGITS_MAX: u16 = 18;
/// What a random text is made of.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Bits that choose a letter, and letters that one number gives.
const LETTER_BITS: u32 = 5;
const LETTERS_OF_A_NUMBER: usize = 12;

/// The values of a client, checked.
#[derive(Debug, Default)]
pub(super) struct Values {
    values: Vec<HttpValue>,
}

/// Where the values of a core are.
#[derive(Debug)]
pub(super) struct Draws {
    /// The number of the next request of each value.
    next: Vec<u64>,
    /// That of the request that is being written.
    current: Vec<u64>,
    next_connection: u64,
    step: u64,
    seed: u64,
}

impl Values {
    /// Those of these settings.
    pub(super) fn new(settings: &[HttpValue]) -> Result<Values, HttpSettingsError> {
        if settings.len() > VALUES_MAX {
            return refused(
                "values",
                format!("has {}; {VALUES_MAX} are the most", settings.len()),
            );
        }
        let mut bytes = 0;
        for (i, value) in settings.iter().enumerate() {
            let field = format!("values[{i}]");
            check_name(&field, &value.name)?;
            if settings[..i].iter().any(|other| other.name == value.name) {
                return refused(
                    format!("{field}.name"),
                    format!("{:?} is there twice: leave one out", value.name),
                );
            }
            check_source(&field, &value.source)?;
            if let HttpValueSource::List { texts, .. } = &value.source {
                bytes += texts.iter().map(String::len).sum::<usize>();
            }
        }
        if bytes > ALL_BYTES_MAX {
            return refused(
                "values",
                format!("have {bytes} bytes; {ALL_BYTES_MAX} are the most: give shorter lists"),
            );
        }
        Ok(Values {
            values: settings.to_vec(),
        })
    }

    /// The place of a value.
    pub(super) fn find(&self, name: &str) -> Option<u16> {
        let place = self.values.iter().position(|value| value.name == name);
        place.map(|place| place as u16)
    }

    /// The names of all, for errors.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.values.iter().map(|value| &value.name[..]).collect();
        match &names[..] {
            [] => "nothing".to_owned(),
            names => names.join(", "),
        }
    }

    /// Refuses a value of which a text has bytes that may not be where it is used.
    pub(super) fn check_texts(
        &self,
        field: &str,
        place: u16,
        is_right: impl Fn(u8) -> bool,
        must: &str,
    ) -> Result<(), HttpSettingsError> {
        let value = &self.values[usize::from(place)];
        let HttpValueSource::List { texts, .. } = &value.source else {
            return Ok(());
        };
        match texts.iter().find(|text| !text.bytes().all(&is_right)) {
            None => Ok(()),
            Some(text) => refused(
                field,
                format!("${{{}}} may be {text:?}, but {must}", value.name),
            ),
        }
    }

    /// Writes the value at this place that the request being written has.
    pub(super) fn write(&self, place: u16, draws: &Draws, out: &mut Vec<u8>) {
        let number = draws.current[usize::from(place)];
        let random = || mixed(number ^ draws.seed ^ u64::from(place) << 48);
        match &self.values[usize::from(place)].source {
            HttpValueSource::List { texts, is_random } => {
                let number = if *is_random { random() } else { number };
                let text = &texts[(number % texts.len() as u64) as usize];
                out.extend_from_slice(text.as_bytes());
            }
            HttpValueSource::Counter {
                first,
                last,
                step,
                digits,
            } => {
                let count = (last - first) / step + 1;
                write_number(first + number % count * step, *digits, out);
            }
            HttpValueSource::Random {
                first,
                last,
                digits,
            } => write_number(first + random() % (last - first + 1), *digits, out),
            HttpValueSource::Token { length } => write_letters(random(), *length, out),
        }
    }
}

impl Draws {
    /// Those of a core.
    pub(super) fn new(values: &Values, core: &CoreInfo) -> Draws {
        let count = values.values.len();
        Draws {
            next: vec![core.rank.into(); count],
            current: vec![0; count],
            next_connection: core.rank.into(),
            step: core.cores.max(1).into(),
            seed: mixed(core.seed),
        }
    }

    /// The number of a connection that begins.
    pub(super) fn connection(&mut self) -> u64 {
        let number = self.next_connection;
        self.next_connection += self.step;
        number
    }

    /// A request of a connection begins that uses the values at these places.
    pub(super) fn begin(&mut self, values: &Values, used: &[u16], connection: u64) {
        for place in used {
            let place = usize::from(*place);
            self.current[place] = if values.values[place].is_of_connection {
                connection
            } else {
                let number = self.next[place];
                self.next[place] += self.step;
                number
            };
        }
    }
}

/// Writes a number with so many digits at least.
pub(super) fn write_number(mut number: u64, digits: u16, out: &mut Vec<u8>) {
    let mut text = [b'0'; 20];
    let mut begin = text.len();
    while number > 0 {
        begin -= 1;
        text[begin] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    let least = text.len() - usize::from(digits.clamp(1, DIGITS_MAX));
    out.extend_from_slice(&text[begin.min(least)..]);
}

fn write_letters(mut bits: u64, length: u16, out: &mut Vec<u8>) {
    let mut left = usize::from(length);
    while left > 0 {
        let mut rest = bits;
        for _ in 0..left.min(LETTERS_OF_A_NUMBER) {
            out.push(LETTERS[(rest % LETTERS.len() as u64) as usize]);
            rest >>= LETTER_BITS;
        }
        left = left.saturating_sub(LETTERS_OF_A_NUMBER);
        bits = mixed(bits);
    }
}

fn check_name(field: &str, name: &str) -> Result<(), HttpSettingsError> {
    if is_token(name) && !name.contains(['$', '{', '}']) {
        return Ok(());
    }
    refused(
        format!("{field}.name"),
        format!("{name:?} must be letters, digits, - and _ only"),
    )
}

fn check_source(field: &str, source: &HttpValueSource) -> Result<(), HttpSettingsError> {
    match source {
        HttpValueSource::List { texts, .. } => check_list(&format!("{field}.list"), texts),
        HttpValueSource::Counter {
            first,
            last,
            step,
            digits,
        } => {
            let field = format!("{field}.counter");
            if *step == 0 {
                return refused(format!("{field}.step"), "is 0; give 1 or more");
            }
            check_range(&field, *first, *last, *digits)
        }
        HttpValueSource::Random {
            first,
            last,
            digits,
        } => check_range(&format!("{field}.random"), *first, *last, *digits),
        HttpValueSource::Token { length } => {
            if (1..=TEXT_BYTES_MAX).contains(&usize::from(*length)) {
                return Ok(());
            }
            refused(
                format!("{field}.token"),
                format!("is {length}; give 1 to {TEXT_BYTES_MAX} letters"),
            )
        }
    }
}

fn check_list(field: &str, texts: &[String]) -> Result<(), HttpSettingsError> {
    if !(1..=TEXTS_MAX).contains(&texts.len()) {
        return refused(
            field,
            format!("has {} texts; give 1 to {TEXTS_MAX}", texts.len()),
        );
    }
    let is_long = |text: &String| text.len() > TEXT_BYTES_MAX;
    match texts.iter().position(is_long) {
        None => Ok(()),
        Some(i) => refused(
            format!("{field}[{i}]"),
            format!(
                "has {} bytes; {TEXT_BYTES_MAX} are the most",
                texts[i].len()
            ),
        ),
    }
}

fn check_range(field: &str, first: u64, last: u64, digits: u16) -> Result<(), HttpSettingsError> {
    if last > NUMBER_MAX {
        return refused(
            format!("{field}.last"),
            format!("is {last}; {NUMBER_MAX} is the most"),
        );
    }
    if first > last {
        return refused(
            format!("{field}.first"),
            format!("is {first}, and last is {last}: give the smaller one first"),
        );
    }
    if digits > DIGITS_MAX {
        return refused(
            format!("{field}.digits"),
            format!("is {digits}; {DIGITS_MAX} are the most"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(source: HttpValueSource, is_of_connection: bool) -> Values {
        let value = HttpValue {
            name: "x".to_owned(),
            source,
            is_of_connection,
        };
        Values::new(&[value]).expect("it is right")
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    /// What the requests of connections have on a core of so many: each sends two.
    fn written(values: &Values, core: (u32, u32), connections: usize) -> Vec<String> {
        let info = CoreInfo {
            seed: 7,
            rank: core.0,
            cores: core.1,
            ..CoreInfo::default()
        };
        let mut draws = Draws::new(values, &info);
        let mut all = Vec::new();
        for _ in 0..connections {
            let connection = draws.connection();
            for _ in 0..2 {
                let mut out = Vec::new();
                draws.begin(values, &[0], connection);
                values.write(0, &draws, &mut out);
                all.push(String::from_utf8(out).expect("it is text"));
            }
        }
        all
    }

    #[test]
    fn a_counter_goes_on_from_request_to_request_and_begins_again() {
        let counter = HttpValueSource::Counter {
            first: 8,
            last: 12,
            step: 2,
            digits: 2,
        };
        let values = value(counter.clone(), false);
        assert_eq!(written(&values, (0, 1), 2), ["08", "10", "12", "08"]);
        let values = value(counter, true);
        assert_eq!(written(&values, (0, 1), 2), ["08", "08", "10", "10"]);
    }

    #[test]
    fn cores_share_the_values_out() {
        let values = value(
            HttpValueSource::Counter {
                first: 0,
                last: 99,
                step: 1,
                digits: 0,
            },
            false,
        );
        let mut all: Vec<u32> = (0..3)
            .flat_map(|rank| written(&values, (rank, 3), 2))
            .map(|text| text.parse().expect("it is a number"))
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..12).collect::<Vec<_>>());
    }

    #[test]
    fn lists_are_drawn_from_in_order_or_at_random() {
        let list = |is_random| HttpValueSource::List {
            texts: texts(&["a", "bb", "ccc"]),
            is_random,
        };
        let values = value(list(false), false);
        assert_eq!(written(&values, (0, 1), 2), ["a", "bb", "ccc", "a"]);
        let drawn = written(&value(list(true), false), (0, 1), 50);
        for text in ["a", "bb", "ccc"] {
            let count = drawn.iter().filter(|drawn| *drawn == text).count();
            assert!((15..60).contains(&count), "{text} is drawn {count} times");
        }
    }

    #[test]
    fn random_numbers_and_texts_stay_in_their_bounds() {
        let random = HttpValueSource::Random {
            first: 5,
            last: 7,
            digits: 0,
        };
        let mut drawn = written(&value(random, false), (0, 1), 50);
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn, ["5", "6", "7"]);
        let drawn = written(
            &value(HttpValueSource::Token { length: 30 }, false),
            (0, 1),
            2,
        );
        assert!(drawn.iter().all(|text| text.len() == 30));
        assert!(drawn[0] != drawn[1] && drawn[0][..12] != drawn[0][12..24]);
    }

    #[test]
    fn numbers_are_written_with_their_digits() {
        for (number, digits, text) in [
            (0, 0, "0"),
            (7, 3, "007"),
            (NUMBER_MAX, 0, "999999999999999999"),
            (u64::MAX, 0, "18446744073709551615"),
        ] {
            let mut out = Vec::new();
            write_number(number, digits, &mut out);
            assert_eq!(out, text.as_bytes());
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        let counter = |first, last, step| HttpValueSource::Counter {
            first,
            last,
            step,
            digits: 0,
        };
        let list = |list: &[&str]| HttpValueSource::List {
            texts: texts(list),
            is_random: false,
        };
        for (name, source, field) in [
            ("a b", list(&["x"]), "values[0].name"),
            ("a", list(&[]), "values[0].list"),
            ("a", list(&["x", &"y".repeat(5_000)]), "values[0].list[1]"),
            ("a", counter(2, 1, 1), "values[0].counter.first"),
            ("a", counter(1, 2, 0), "values[0].counter.step"),
            ("a", counter(1, u64::MAX, 1), "values[0].counter.last"),
            ("a", HttpValueSource::Token { length: 0 }, "values[0].token"),
        ] {
            let value = HttpValue {
                name: name.to_owned(),
                source,
                is_of_connection: false,
            };
            let error = Values::new(&[value]).expect_err("it is wrong");
            assert_eq!(error.field, field);
        }
        let twice = ["a", "a"].map(|name| HttpValue {
            name: name.to_owned(),
            source: list(&["x"]),
            is_of_connection: false,
        });
        let error = Values::new(&twice).expect_err("it is wrong");
        assert_eq!(error.field, "values[1].name");
    }
}
