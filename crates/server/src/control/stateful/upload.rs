//! What became of a text that came in parts, and what is wrong with one.

use std::sync::Arc;

use allosaur_api::Error;

use crate::control::upload::Upload;

/// A text that is whole.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: Arc<String>,
    /// In hexadecimal.
    pub(super) md5: String,
}

/// The last part of a text has come.
pub(super) fn finish(upload: Upload) -> Result<Text, Error> {
    let uploaded = upload.finish().map_err(|wrong| {
        Error::execution(format!(
            "the fragments do not make the text that was announced: their md5 is {}, not \
             '{:.40}'. Send them again, from the first on",
            wrong.found, wrong.told
        ))
    })?;
    Ok(Text {
        text: Arc::new(uploaded.text),
        md5: uploaded.md5,
    })
}

/// The error of a part that follows on nothing.
pub(super) fn not_begun() -> Error {
    Error::execution("the first fragment is missing: begin with one that has 'frag_first'")
}
