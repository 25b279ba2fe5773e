//! Processes and the files that they have open, as far as this process may look into others.

use super::tree::Tree;

/// A process that has something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Its number.
    pub process: u32,
    /// Its name.
    pub name: String,
}

/// Calls `each` with every open file: who has it, and what it is.
pub(super) fn each_open_file(tree: Tree<'_>, mut each: impl FnMut(u32, &str)) {
    let processes = tree.names("proc");
    for process in processes.iter().filter_map(|name| name.parse().ok()) {
        for file in tree.names(&format!("proc/{process}/fd")) {
            if let Some(target) = tree.target(&format!("proc/{process}/fd/{file}")) {
                each(process, &target);
            }
        }
    }
}

/// A process by its number.
pub(super) fn holder(tree: Tree<'_>, process: u32) -> Holder {
    Holder {
        process,
        name: tree.text(&format!("proc/{process}/comm")),
    }
}

/// Another process that has one of these files open.
pub(super) fn other_with(tree: Tree<'_>, files: &[String]) -> Option<Holder> {
    if files.is_empty() {
        return None;
    }
    let mut found = None;
    each_open_file(tree, |process, target| {
        if process != std::process::id() && files.iter().any(|file| file == target) {
            found = Some(process);
        }
    });
    found.map(|process| holder(tree, process))
}
