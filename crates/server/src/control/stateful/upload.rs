//! A text that comes in parts, because a request may not be that long.

use std::sync::Arc;

use allosaur_api::Error;
use allosaur_api::commands::stateful::profiles::Fragment;
use md5::{Digest, Md5};

/// A text that is whole.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: Arc<String>,
    /// In hexadecimal.
    pub(super) md5: String,
}

/// A text whose last part has not come.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    text: String,
    /// Of the text so far: that of a whole profile would take a while.
    digest: Md5,
    /// What the whole shall have.
    md5: Option<String>,
}

impl Upload {
    /// Takes the first part.
    pub(super) fn begin(fragment: &Fragment<'_>) -> Upload {
        Upload {
            text: fragment.text.to_owned(),
            digest: Md5::new_with_prefix(fragment.text),
            md5: fragment.md5.map(str::to_ascii_lowercase),
        }
    }

    /// How long it is until now, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Takes another part.
    pub(super) fn add(&mut self, fragment: &Fragment<'_>) {
        self.text.push_str(fragment.text);
        self.digest.update(fragment.text);
    }

    /// The last part has come.
    pub(super) fn finish(self) -> Result<Text, Error> {
        let md5 = format!("{:x}", self.digest.finalize());
        match self.md5 {
            Some(told) if told != md5 => Err(Error::execution(format!(
                "the fragments do not make the text that was announced: their md5 is {md5}, not \
                 '{told:.40}'. Send them again, from the first on"
            ))),
            _ => Ok(Text {
                text: Arc::new(self.text),
                md5,
            }),
        }
    }
}

/// The error of a part that follows on nothing.
pub(super) fn not_begun() -> Error {
    Error::execution("the first fragment is missing: begin with one that has 'frag_first'")
}
