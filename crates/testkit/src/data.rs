//! Where the data for tests lies: beside the checkout, in `../shared/data`.
//!
//! It is not part of the project; a test that finds none says so and ends.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn workspace_root() -> PathBuf {
    let this_crate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = this_crate.ancestors().nth(2);
    root.expect("this crate is two levels below the workspace")
        .to_owned()
}

/// A folder of the data for tests; `None`, and a message on stderr that a test is skipped, when
/// it is not there.
pub fn folder(name: &str) -> Option<PathBuf> {
    let folder = workspace_root().join("../shared/data").join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: there is no {}", folder.display());
    None
}

/// The captures of stateless profiles, with the requests that make them; see [`folder`].
pub fn golden_dir() -> Option<PathBuf> {
    folder("golden-stateless")
}

/// Pairs of files `NAME.json` and `NAME.pcap` in a folder, as (name, json, pcap), by name.
pub fn golden_pairs(folder: &Path) -> Vec<(String, PathBuf, PathBuf)> {
    let entries = std::fs::read_dir(folder).expect("the folder was found and can be read");
    let mut pairs: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|json| (json.with_extension("pcap"), json))
        .filter(|(pcap, _)| pcap.is_file())
        .filter_map(|(pcap, json)| {
            let name = json.file_stem()?.to_str()?.to_owned();
            Some((name, json, pcap))
        })
        .collect();
    pairs.sort();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_where_the_workspace_is() {
        let manifest = workspace_root().join("Cargo.toml");
        let text = std::fs::read_to_string(manifest).expect("the workspace has a manifest");
        assert!(text.contains("[workspace]"));
    }

    #[test]
    fn a_folder_that_is_not_there_is_none() {
        assert_eq!(folder("no-such-folder"), None);
    }

    #[test]
    fn goldens_come_in_pairs() {
        let Some(folder) = golden_dir() else { return };
        let pairs = golden_pairs(&folder);
        assert!(!pairs.is_empty());
        assert!(
            pairs
                .iter()
                .all(|(_, json, pcap)| json.is_file() && pcap.is_file())
        );
    }
}
