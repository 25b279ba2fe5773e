//! What can be wrong with the bytes of a header; what can be wrong with a capture file says `file`.

use thiserror::Error;

/// Why bytes are not the header that they should be, with the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The bytes end before the header does.
    #[error(
        "{header}: {available} bytes are too few, the header takes {needed}. Give the whole header"
    )]
    Short {
        /// Which header.
        header: &'static str,
        /// Bytes that the header takes.
        needed: usize,
        /// Bytes that there are.
        available: usize,
    },
    /// A field has a value that the protocol does not allow.
    #[error("{header}: field '{field}' is {value}; it must be {expected}")]
    Field {
        /// Which header.
        header: &'static str,
        /// Which field of it.
        field: &'static str,
        /// The value found.
        value: u64,
        /// What would be right.
        expected: &'static str,
    },
}

/// The check that every view makes first: are there `needed` bytes?
pub(crate) fn check_length(
    header: &'static str,
    bytes: &[u8],
    needed: usize,
) -> Result<(), HeaderError> {
    let available = bytes.len();
    if available < needed {
        return Err(HeaderError::Short {
            header,
            needed,
            available,
        });
    }
    Ok(())
}
