//! A text that comes in parts, because a request may not be that long.

use md5::{Digest, Md5};

/// A text whose last part has not come.
#[derive(Clone, Debug)]
pub(crate) struct Upload {
    text: String,
    /// Of the text so far: that of a whole one would take a while.
    digest: Md5,
    /// What the whole shall have.
    md5: Option<String>,
}

/// A text that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uploaded {
    pub(crate) text: String,
    /// In hexadecimal.
    pub(crate) md5: String,
}

/// The parts make another text than the one that was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongMd5 {
    /// What was announced.
    pub(crate) told: String,
    /// What the parts have.
    pub(crate) found: String,
}

impl Upload {
    /// Takes the first part, and the MD5 that the whole shall have, if that was told.
    pub(crate) fn begin(text: &str, md5: Option<&str>) -> Upload {
        Upload {
            text: text.to_owned(),
            digest: Md5::new_with_prefix(text),
            md5: md5.map(str::to_ascii_lowercase),
        }
    }

    /// How long it is until now, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Takes another part.
    pub(crate) fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.digest.update(text);
    }

    /// The last part has come.
    ///
    /// # Errors
    /// When the whole is not what was announced.
    pub(crate) fn finish(self) -> Result<Uploaded, WrongMd5> {
        let found = format!("{:x}", self.digest.finalize());
        match self.md5 {
            Some(told) if told != found => Err(WrongMd5 { told, found }),
            _ => Ok(Uploaded {
                text: self.text,
                md5: found,
            }),
        }
    }
}
