//! The recorded data for tests, in `tests/data`; its README says what is there and where it is from.
//!
//! It is part of the project: a test whose data is missing fails.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// The root of the workspace.
pub fn workspace_root() -> PathBuf {
    let this_crate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = this_crate.ancestors().nth(2);
    root.expect("this crate is two levels below the workspace")
        .to_owned()
}

/// A folder of the recorded data.
///
/// # Panics
///
/// When it is not there.
pub fn folder(name: &str) -> PathBuf {
    let folder = workspace_root().join("tests/data").join(name);
    assert!(
        folder.is_dir(),
        "tests/data/{name} is missing: it is part of the project, `git restore tests/data` brings it back"
    );
    folder
}

/// The files of a folder of the recorded data whose names end so, by name; see [`folder`].
///
/// # Panics
///
/// When there is none.
pub fn files(name: &str, suffix: &str) -> Vec<PathBuf> {
    let mut files = listed(&folder(name));
    files.retain(|path| path.to_str().is_some_and(|path| path.ends_with(suffix)));
    assert!(!files.is_empty(), "tests/data/{name} has no file *{suffix}");
    files
}

/// The inputs that a fuzz target begins with, each with its name.
///
/// # Panics
///
/// When there are none.
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let files = listed(&workspace_root().join("fuzz/seeds").join(target));
    assert!(!files.is_empty(), "fuzz/seeds/{target} is empty");
    let named = files.into_iter().map(|path| {
        let bytes = std::fs::read(&path).expect("a seed can be read");
        (path.display().to_string(), bytes)
    });
    named.collect()
}

/// The files in a folder, by name.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let place = folder.display();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{place}: {error}"));
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    paths
}

/// The text of a file, unpacked where its name ends in `.gz`.
///
/// # Panics
///
/// When it is not there, or is no text.
pub fn text(path: &Path) -> String {
    let place = path.display();
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{place}: {error}"));
    if path.extension().is_none_or(|extension| extension != "gz") {
        return String::from_utf8(bytes).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
    let mut text = String::new();
    let unpacked = GzDecoder::new(&bytes[..]).read_to_string(&mut text);
    unpacked.unwrap_or_else(|error| panic!("{place}: {error}"));
    text
}

/// The captures of stateless profiles with the requests that make them, `NAME.json` and
/// `NAME.pcap`, as (name, json, pcap), by name.
///
/// # Panics
///
/// When there is none, or one of a pair is missing.
pub fn golden_pairs() -> Vec<(String, PathBuf, PathBuf)> {
    let pair = |json: PathBuf| {
        let pcap = json.with_extension("pcap");
        assert!(pcap.is_file(), "{} is missing", pcap.display());
        let name = json.file_stem().expect("a file has a name");
        (name.to_string_lossy().into_owned(), json, pcap)
    };
    let requests = files("golden-stateless", ".json");
    requests.into_iter().map(pair).collect()
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
    #[should_panic(expected = "tests/data/no-such-folder is missing: it is part of the project")]
    fn a_folder_that_is_not_there_fails_the_test() {
        folder("no-such-folder");
    }

    #[test]
    #[should_panic(expected = "tests/data/pcap has no file *.json")]
    fn a_kind_of_file_that_is_not_there_fails_the_test() {
        files("pcap", ".json");
    }

    #[test]
    fn everything_that_was_recorded_is_there() {
        assert_eq!(golden_pairs().len(), 42);
        let counts = [
            ("golden-stateless", ".pcap", 42),
            ("pcap", ".pcap", 21),
            ("profiles-stateful", ".json", 33),
            ("rpc-transcripts", ".jsonl.gz", 28),
        ];
        for (name, suffix, count) in counts {
            assert_eq!(files(name, suffix).len(), count, "{name}");
        }
    }

    #[test]
    fn packed_files_are_unpacked() {
        let packed = folder("rpc-transcripts").join("stl_s01_connect_disconnect.jsonl.gz");
        assert!(text(&packed).starts_with("{\"scenario\": \"stl_s01_connect_disconnect\""));
        let plain = folder("golden-stateless").join("imix.json");
        assert!(text(&plain).contains("\"commands\""));
    }
}
