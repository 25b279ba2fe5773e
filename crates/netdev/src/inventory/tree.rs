//! The small files in which the kernel tells about itself, below a root: `/` or, in tests, a folder
//! that looks like it.

use std::path::{Component, Path, PathBuf};

/// The root of a file system with `/sys` and `/proc`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree<'a>(pub(super) &'a Path);

impl Tree<'_> {
    /// A path below the root.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A file's text without the space around it; empty where the kernel does not tell.
    pub(super) fn text(&self, path: &str) -> String {
        let text = std::fs::read(self.path(path)).unwrap_or_default();
        String::from_utf8_lossy(&text).trim().to_owned()
    }

    /// A number in a file.
    pub(super) fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path).parse().ok()
    }

    /// The names in a folder, in order; none when it is not there.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The last part of what a link points to.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// What a link points to, as it is written there.
    pub(super) fn target(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        Some(target.to_str()?.to_owned())
    }

    /// Whether there is such a file or folder.
    pub(super) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The parts of a path once all its links were followed.
    pub(super) fn real_parts(&self, path: &str) -> Vec<String> {
        let real = std::fs::canonicalize(self.path(path)).unwrap_or_default();
        let parts = real.components().filter_map(|part| match part {
            Component::Normal(name) => name.to_str().map(str::to_owned),
            _ => None,
        });
        parts.collect()
    }
}
