//! Who may use the RPC from other machines: names with tokens, and how often an address may be wrong.
//!
//! Knows no socket and no clock: the handshake of [`zmtp`](super::zmtp) asks it.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use allosaur_engine::time::{Nanos, SECOND};
use subtle::{Choice, ConstantTimeEq};
use thiserror::Error;

/// A shorter token could be found by trying.
const TOKEN_BYTES_MIN: usize = 16;
/// Of a name and of a token: ZeroMQ's PLAIN mechanism sends no more (RFC 24/ZMTP-PLAIN).
const WORD_BYTES_MAX: usize = 255;
/// Wrong tokens from one address before it is not listened to for a while.
const FAILURES_MAX: u32 = 5;
/// That while, and the time in which failures add up.
const BLOCKED: Nanos = 60 * SECOND;
/// Addresses whose failures are remembered; the oldest is forgotten first.
const ADDRESSES_MAX: usize = 1024;

/// Why a file of names and tokens is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}: {problem}")]
pub struct AccessError {
    file: String,
    problem: String,
}

/// What becomes of someone who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The token is right.
    Granted,
    /// It is not; so many more may be wrong before the address is blocked.
    Refused {
        /// How many.
        tries_left: u32,
    },
    /// Too many from this address were wrong: this one was not looked at.
    Blocked,
}

/// Names with their tokens, and what was wrong lately.
pub struct AccessList {
    users: Vec<(String, String)>,
    failures: HashMap<String, Failures>,
}

struct Failures {
    count: u32,
    /// When they are forgotten.
    until: Nanos,
}

impl AccessList {
    /// Reads a file of lines `NAME:TOKEN`; empty ones and those that begin with `#` are left out.
    ///
    /// # Errors
    ///
    /// When others may read the file, and when a line is wrong.
    pub fn read(file: &Path) -> Result<AccessList, AccessError> {
        let wrong = |problem: String| AccessError {
            file: file.display().to_string(),
            problem,
        };
        let cannot = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
        let mode = fs::metadata(file).map_err(cannot)?.permissions().mode();
        if mode & 0o077 != 0 {
            let name = file.display();
            return Err(wrong(format!(
                "others may read these tokens: chmod 600 {name}"
            )));
        }
        AccessList::parse(&fs::read_to_string(file).map_err(cannot)?).map_err(wrong)
    }

    fn parse(text: &str) -> Result<AccessList, String> {
        let mut users: Vec<(String, String)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let user = parse_line(line).map_err(|problem| format!("line {number}: {problem}"))?;
            if users.iter().any(|(name, _)| *name == user.0) {
                let name = user.0;
                return Err(format!("line {number}: '{name}' has a token already"));
            }
            users.push(user);
        }
        if users.is_empty() {
            return Err("nobody is in it: write a line NAME:TOKEN for each user".to_owned());
        }
        Ok(AccessList {
            users,
            failures: HashMap::new(),
        })
    }

    /// Judges a name and a token that came from an address.
    pub fn judge(&mut self, now: Nanos, address: &str, name: &[u8], token: &[u8]) -> Admission {
        self.failures.retain(|_, failures| failures.until > now);
        let count = self.failures.get(address).map_or(0, |one| one.count);
        if count >= FAILURES_MAX {
            return Admission::Blocked;
        }
        if self.knows(name, token) {
            self.failures.remove(address);
            return Admission::Granted;
        }
        if count == 0 && self.failures.len() >= ADDRESSES_MAX {
            self.forget_oldest();
        }
        let failures = Failures {
            count: count + 1,
            until: now + BLOCKED,
        };
        self.failures.insert(address.to_owned(), failures);
        Admission::Refused {
            tries_left: FAILURES_MAX - count - 1,
        }
    }

    /// Takes the same time whoever is asked for, but for the lengths.
    fn knows(&self, name: &[u8], token: &[u8]) -> bool {
        let known = |(own, right): &(String, String)| {
            own.as_bytes().ct_eq(name) & right.as_bytes().ct_eq(token)
        };
        let all = self.users.iter().map(known);
        all.fold(Choice::from(0), |any, one| any | one).into()
    }

    fn forget_oldest(&mut self) {
        let oldest = self.failures.iter().min_by_key(|(_, one)| one.until);
        if let Some(address) = oldest.map(|(address, _)| address.clone()) {
            self.failures.remove(&address);
        }
    }
}

/// Shows no token.
impl fmt::Debug for AccessList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.users.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("AccessList").field("users", &names).finish()
    }
}

fn parse_line(line: &str) -> Result<(String, String), String> {
    let (name, token) = line
        .split_once(':')
        .ok_or("write NAME:TOKEN, with a colon between")?;
    let (name, token) = (name.trim(), token.trim());
    if name.is_empty() || name.len() > WORD_BYTES_MAX {
        return Err(format!("a name has 1 to {WORD_BYTES_MAX} bytes"));
    }
    if !(TOKEN_BYTES_MIN..=WORD_BYTES_MAX).contains(&token.len()) {
        return Err(format!(
            "a token has {TOKEN_BYTES_MIN} to {WORD_BYTES_MAX} bytes: `openssl rand -hex 16` makes one"
        ));
    }
    Ok((name.to_owned(), token.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn list() -> AccessList {
        AccessList::parse(&format!("# who\n\nann : {TOKEN}\nbob:{TOKEN}-of-bob:2\n"))
            .expect("it is right")
    }

    fn judge(list: &mut AccessList, now: Nanos, address: &str, token: &str) -> Admission {
        list.judge(now, address, b"ann", token.as_bytes())
    }

    #[test]
    fn a_name_needs_its_own_token() {
        let mut list = list();
        assert_eq!(judge(&mut list, 0, "a", TOKEN), Admission::Granted);
        let bobs = format!("{TOKEN}-of-bob:2");
        let bob = list.judge(0, "a", b"bob", bobs.as_bytes());
        assert_eq!(bob, Admission::Granted);
        let wrong = [("ann", &*bobs), ("bob", TOKEN), ("ann", ""), ("", TOKEN)];
        for (address, (name, token)) in ["a", "b", "c", "d"].into_iter().zip(wrong) {
            let admission = list.judge(0, address, name.as_bytes(), token.as_bytes());
            assert_eq!(
                admission,
                Admission::Refused { tries_left: 4 },
                "{name} {token}"
            );
        }
    }

    #[test]
    fn an_address_that_was_wrong_too_often_is_blocked_for_a_minute() {
        let mut list = list();
        for tries_left in (0..FAILURES_MAX).rev() {
            let refused = Admission::Refused { tries_left };
            assert_eq!(judge(&mut list, 0, "a", "wrong"), refused);
        }
        assert_eq!(judge(&mut list, 1, "a", TOKEN), Admission::Blocked);
        assert_eq!(judge(&mut list, 1, "b", TOKEN), Admission::Granted);
        assert_eq!(judge(&mut list, BLOCKED, "a", TOKEN), Admission::Granted);
    }

    #[test]
    fn a_right_token_and_time_make_failures_forgotten() {
        let mut list = list();
        for _ in 0..3 {
            for _ in 1..FAILURES_MAX {
                judge(&mut list, 0, "a", "wrong");
            }
            assert_eq!(judge(&mut list, 0, "a", TOKEN), Admission::Granted);
        }
        judge(&mut list, 0, "a", "wrong");
        let later = judge(&mut list, BLOCKED, "a", "wrong");
        assert_eq!(later, Admission::Refused { tries_left: 4 });
    }

    #[test]
    fn addresses_are_not_remembered_without_end() {
        let mut list = list();
        for number in 0..2 * ADDRESSES_MAX as u64 {
            judge(&mut list, number, &number.to_string(), "wrong");
        }
        assert_eq!(list.failures.len(), ADDRESSES_MAX);
        assert!(list.failures.contains_key("2047"));
    }

    #[test]
    fn each_wrong_line_is_named_with_what_to_do() {
        for (text, part) in [
            ("", "NAME:TOKEN"),
            ("# only words", "NAME:TOKEN"),
            ("ann", "line 1: write NAME:TOKEN"),
            ("ann:short", "openssl rand -hex 16"),
            (":0123456789abcdef", "a name has 1 to 255"),
            (
                "ann:0123456789abcdef\nann:0123456789abcdef",
                "line 2: 'ann' has a token already",
            ),
        ] {
            let error = AccessList::parse(text).expect_err("it is wrong");
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let name = format!("allosaur-tokens-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        fs::write(&file, format!("ann:{TOKEN}\n")).expect("written");
        let allow = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode));
        allow(0o640).expect("ours");
        let error = AccessList::read(&file).expect_err("others may read it");
        assert!(error.to_string().contains("chmod 600"), "{error}");
        allow(0o600).expect("ours");
        let list = AccessList::read(&file).expect("it is right");
        assert!(!format!("{list:?}").contains(TOKEN));
        fs::remove_file(&file).expect("ours");
        let missing = AccessList::read(&file).expect_err("missing");
        assert!(missing.to_string().contains("cannot be read"), "{missing}");
    }

    proptest! {
        #[test]
        fn nobody_without_a_token_comes_in(
            name in prop::collection::vec(any::<u8>(), 0..40),
            token in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            prop_assert_ne!(list().judge(0, "a", &name, &token), Admission::Granted);
        }
    }
}
