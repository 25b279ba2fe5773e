//! docs/guide/configuration.md shows every key as the reader knows it, and its examples are right.

use std::fmt::Write;
use std::path::PathBuf;

use allosaur_server::config::groups::GROUP_KEYS;
use allosaur_server::config::ours::{PORT_KEYS, SERVER_KEYS};
use allosaur_server::config::read::Key;
use allosaur_server::config::trex::{self, TrexKey};
use allosaur_server::config::{Surroundings, load};

/// Set to write the tables into the guide instead of comparing them.
const WRITE_DOCS: &str = "ALLOSAUR_WRITE_DOCS";
const END: &str = "<!-- end -->";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/configuration.md")
}

fn guide() -> String {
    std::fs::read_to_string(path()).expect("the guide is there")
}

fn our_table(keys: &[Key]) -> String {
    let mut table = String::from("| key | value | without it | meaning |\n|---|---|---|---|\n");
    for key in keys {
        let Key {
            name,
            value,
            default,
            meaning,
            ..
        } = key;
        writeln!(table, "| `{name}` | {value} | {default} | {meaning} |").expect("to a string");
    }
    table
}

fn trex_table() -> String {
    let mut table = String::from("| key | here |\n|---|---|\n");
    for (prefix, keys) in [
        ("", &trex::KEYS[..]),
        ("port_info[].", &trex::PORT_KEYS),
        ("memory.", &trex::MEMORY_KEYS),
        ("platform.", &trex::PLATFORM_KEYS),
        ("platform.dual_if[].", &trex::DUAL_KEYS),
    ] {
        for TrexKey {
            name,
            meaning,
            reason,
        } in keys
        {
            let here = meaning.map_or(format!("warning: {reason}"), str::to_owned);
            writeln!(table, "| `{prefix}{name}` | {here} |").expect("to a string");
        }
    }
    table
}

/// The guide with the tables as they must be.
fn with_tables(mut guide: String) -> String {
    for (mark, table) in [
        ("<!-- server keys", our_table(&SERVER_KEYS)),
        ("<!-- group keys", our_table(&GROUP_KEYS)),
        ("<!-- port keys", our_table(&PORT_KEYS)),
        ("<!-- trex keys", trex_table()),
    ] {
        let mark = guide.find(mark).expect("the guide has its marks");
        let start = mark + guide[mark..].find('\n').expect("a line ends") + 1;
        let end = start + guide[start..].find(END).expect("the guide has its marks");
        guide.replace_range(start..end, &table);
    }
    guide
}

#[test]
fn the_guide_shows_every_key() {
    let guide = guide();
    let right = with_tables(guide.clone());
    if std::env::var_os(WRITE_DOCS).is_some() {
        // At once, for the test beside this one reads it.
        let new = path().with_extension("new");
        std::fs::write(&new, right).expect("the guide can be written");
        std::fs::rename(new, path()).expect("the guide can be written");
        return;
    }
    let remedy = "ALLOSAUR_WRITE_DOCS=1 cargo test -p allosaur-server --test guides";
    assert!(guide == right, "the tables of the guide are old: {remedy}");
}

#[test]
fn the_examples_of_the_guide_are_right() {
    let cores = std::fs::read_to_string(path().with_file_name("cores.md"));
    let guide = guide() + &cores.expect("the guide is there");
    let blocks = guide.split("```yaml\n").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2, "the guide has examples");
    for block in blocks {
        let loaded = load(block, &Surroundings::default());
        assert!(loaded.is_ok(), "{block}: {loaded:?}");
    }
}
