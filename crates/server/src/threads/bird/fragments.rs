//! Configurations that arrive in fragments, and those that clients have sent before.

use std::collections::VecDeque;

use allosaur_api::Error;
use allosaur_api::commands::bird::{BIRD_FRAGMENTS, BirdFragment, bird_error};
use md5::{Digest, Md5};

use crate::control::upload::{Upload, Uploaded, WrongMd5};

/// Most bytes of a configuration: some ten million routes.
const CONFIG_BYTES_MAX: usize = 512 << 20;
/// Configurations that are kept to be found by their MD5.
const KEPT_MAX: usize = 5;

/// What came of a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Assembled {
    /// More must come.
    Part,
    /// All is there. It may be known from before.
    Whole {
        /// The configuration.
        text: String,
        /// It was sent before.
        is_known: bool,
    },
}

/// A configuration that is arriving, and the last ones that did.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// What has arrived, once the first fragment has.
    begun: Option<Upload>,
    /// By their MD5s, the newest first.
    kept: VecDeque<(String, String)>,
}

impl Fragments {
    /// Takes the next one.
    ///
    /// # Errors
    ///
    /// The first is missing, the whole is too long or is not what its MD5 says. Then it must be sent again
    /// from its beginning.
    pub(super) fn add(&mut self, part: BirdFragment) -> Result<Assembled, Error> {
        if part.frag_first {
            self.begun = None;
            let told = part.md5.as_deref().map(str::to_ascii_lowercase);
            if let Some(text) = told.as_ref().and_then(|md5| self.kept(md5)) {
                return Ok(Assembled::Whole {
                    text,
                    is_known: true,
                });
            }
            self.begun = Some(Upload::begin("", told.as_deref()));
        }
        let mut upload = self.begun.take().ok_or_else(|| {
            wrong("'frag_first' is missing: send the configuration from its beginning")
        })?;
        if upload.bytes() + part.fragment.len() > CONFIG_BYTES_MAX {
            return Err(wrong(format!(
                "the configuration has more than {CONFIG_BYTES_MAX} bytes, which is the most: make it shorter"
            )));
        }
        upload.add(&part.fragment);
        if !part.frag_last {
            self.begun = Some(upload);
            return Ok(Assembled::Part);
        }
        let Uploaded { text, md5 } = upload.finish().map_err(|WrongMd5 { told, found }| {
            wrong(format!(
                "'md5' is {told}, and the fragments that arrived have {found}: send the configuration again"
            ))
        })?;
        let is_known = self.kept(&md5).is_some();
        Ok(Assembled::Whole { text, is_known })
    }

    /// Forgets one that has not arrived as a whole.
    pub(super) fn forget_begun(&mut self) {
        self.begun = None;
    }

    /// Keeps a configuration that BIRD has taken.
    pub(super) fn keep(&mut self, text: String) {
        let md5 = md5_of(&text);
        self.kept.retain(|(kept, _)| *kept != md5);
        self.kept.push_front((md5, text));
        self.kept.truncate(KEPT_MAX);
    }

    fn kept(&self, md5: &str) -> Option<String> {
        let mut kept = self.kept.iter();
        let (_, text) = kept.find(|(kept, _)| kept == md5)?;
        Some(text.clone())
    }
}

fn wrong(text: impl std::fmt::Display) -> Error {
    bird_error(BIRD_FRAGMENTS, text)
}

fn md5_of(text: &str) -> String {
    format!("{:x}", Md5::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(fragment: &str, first: bool, last: bool, md5: Option<&str>) -> BirdFragment {
        BirdFragment {
            handler: 1,
            fragment: fragment.to_owned(),
            frag_first: first,
            frag_last: last,
            md5: md5.map(str::to_owned),
        }
    }

    fn whole(text: &str, is_known: bool) -> Result<Assembled, Error> {
        let text = text.to_owned();
        Ok(Assembled::Whole { text, is_known })
    }

    #[test]
    fn fragments_are_joined_and_known_ones_need_not_be_sent() {
        let mut fragments = Fragments::default();
        let md5 = md5_of("abc");
        let first = || part("a", true, false, Some(&md5));
        assert_eq!(fragments.add(first()), Ok(Assembled::Part));
        assert_eq!(
            fragments.add(part("b", false, false, None)),
            Ok(Assembled::Part)
        );
        assert_eq!(
            fragments.add(part("c", false, true, None)),
            whole("abc", false)
        );
        fragments.keep("abc".to_owned());
        assert_eq!(fragments.add(first()), whole("abc", true));
        for other in 0..KEPT_MAX {
            fragments.keep(other.to_string());
        }
        assert_eq!(fragments.add(first()), Ok(Assembled::Part));
    }

    #[test]
    fn what_is_not_as_it_was_sent_is_refused() {
        let mut fragments = Fragments::default();
        let refused = |added: Result<Assembled, Error>, words: &str| {
            let error = added.expect_err(words);
            assert_eq!(error.code, BIRD_FRAGMENTS);
            assert!(error.message.contains(words), "{error}");
        };
        refused(
            fragments.add(part("b", false, true, None)),
            "'frag_first' is missing",
        );
        let other = md5_of("other");
        let first = part("a", true, false, Some(&other));
        assert_eq!(fragments.add(first), Ok(Assembled::Part));
        refused(fragments.add(part("b", false, true, None)), &other);
        refused(
            fragments.add(part("b", false, true, None)),
            "'frag_first' is missing",
        );
        assert_eq!(
            fragments.add(part("a", true, true, None)),
            whole("a", false)
        );
    }
}
