//! What is no regular file, in words for users.

use std::fs::FileType;

/// What a thing of the file system is that is no regular file.
pub(super) fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_symlink() {
        "a link to nothing"
    } else {
        "a device, pipe or socket"
    }
}
