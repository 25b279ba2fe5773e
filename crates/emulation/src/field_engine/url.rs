//! URLs put together at random from schemes, hosts, paths and queries.

use super::Random;
use super::params::{EngineError, Params};

/// Letters of a random query.
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// What a random query begins with.
const RANDOM_QUERY: &str = "?q=";

/// The parts of one entry; paths begin with `/` and queries with `?`.
#[derive(Clone, Debug)]
pub(super) struct Url {
    schemes: Vec<String>,
    hosts: Vec<String>,
    paths: Vec<String>,
    queries: Vec<String>,
    random_queries: bool,
}

impl Url {
    pub(super) fn parse(entry: &Params<'_>, size: u16) -> Result<Url, EngineError> {
        let parts = |name: &str, before: &str, also: &[u8]| -> Result<Vec<String>, EngineError> {
            let texts = entry.texts(name)?.into_iter();
            Ok(texts
                .map(|text| format!("{before}{}", escape(text, also)))
                .collect())
        };
        let url = Url {
            schemes: entry
                .texts("schemes")?
                .into_iter()
                .map(str::to_owned)
                .collect(),
            hosts: entry
                .texts("hosts")?
                .into_iter()
                .map(str::to_owned)
                .collect(),
            paths: entry
                .texts("paths")?
                .into_iter()
                .map(|path| format!("/{}", escape(path.trim_start_matches('/'), b"/$&+,:;=@")))
                .collect(),
            queries: parts("queries", "?", b"/?$&+,:;=@!'()*[]%")?,
            random_queries: entry.flag("random_queries")?.unwrap_or(false),
        };
        if url.schemes.is_empty() {
            return Err(EngineError::new("Schemes list can't be empty."));
        }
        if url.hosts.is_empty() {
            return Err(EngineError::new("Hosts list can't be empty."));
        }
        if url.random_queries && !url.queries.is_empty() {
            return Err(EngineError::new(
                "Can't have a list of queries and random queries set together. \
                 Please use only one.",
            ));
        }
        let longest = url.longest();
        if longest > usize::from(size) {
            return Err(EngineError::new(format!(
                "A URL of this entry can have {longest} bytes, more than size {size}."
            )));
        }
        Ok(url)
    }

    fn longest(&self) -> usize {
        let query = match self.random_queries {
            true => RANDOM_QUERY.len(),
            false => longest_of(&self.queries),
        };
        longest_of(&self.schemes) + 3 + longest_of(&self.hosts) + longest_of(&self.paths) + query
    }

    /// Writes a URL, at most as long as `out`, and says how long it is.
    pub(super) fn write(&self, random: &mut impl Random, out: &mut [u8]) -> usize {
        let mut length = 0;
        let mut put = |text: &str| {
            out[length..length + text.len()].copy_from_slice(text.as_bytes());
            length += text.len();
        };
        put(one_of(&self.schemes, random));
        put("://");
        put(one_of(&self.hosts, random));
        put(one_or_none(&self.paths, random));
        if !self.random_queries {
            put(one_or_none(&self.queries, random));
            return length;
        }
        put(RANDOM_QUERY);
        let free = (out.len() - length) as u64;
        for _ in 0..random.below(free + 1) {
            let letter = random.below(LETTERS.len() as u64);
            out[length] = LETTERS[usize::try_from(letter).unwrap_or(0)];
            length += 1;
        }
        length
    }
}

fn longest_of(parts: &[String]) -> usize {
    parts.iter().map(String::len).max().unwrap_or(0)
}

fn one_of<'a>(parts: &'a [String], random: &mut impl Random) -> &'a str {
    let index = random.below(parts.len() as u64);
    parts
        .get(usize::try_from(index).unwrap_or(0))
        .map_or("", String::as_str)
}

/// One of the parts or none, all equally likely.
fn one_or_none<'a>(parts: &'a [String], random: &mut impl Random) -> &'a str {
    let index = random.below(parts.len() as u64 + 1);
    parts
        .get(usize::try_from(index).unwrap_or(0))
        .map_or("", String::as_str)
}

/// Percent-encodes all bytes but the unreserved ones (RFC 3986, section 2.3) and those of `also`.
fn escape(text: &str, also: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
