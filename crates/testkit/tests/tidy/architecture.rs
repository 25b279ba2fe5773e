//! Rule: ARCHITECTURE.md is a map: short, and with every crate and module of the ordered crates.

use crate::module_order::declared;
use crate::source::{RustFile, rust_files, text_file};

/// Most lines of the map.
const LINES_MAX: usize = 300;
/// The crates whose modules are on it.
const WITH_MODULES: [&str; 2] = ["engine", "server"];

fn check(map: &str, crates: &[String], modules: &[String]) -> Vec<String> {
    let mut violations = Vec::new();
    let lines = map.lines().count();
    if lines > LINES_MAX {
        violations.push(format!(
            "ARCHITECTURE.md: {lines} lines; the most is {LINES_MAX}"
        ));
    }
    for name in crates
        .iter()
        .filter(|name| !map.contains(&format!("crates/{name}")))
    {
        violations.push(format!("ARCHITECTURE.md: crates/{name} is not on the map"));
    }
    for name in modules {
        // A module stands in code, alone or with a path or ending around it.
        let mut codes = map.split('`').skip(1).step_by(2);
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if !codes.any(|code| code.split(|c| !is_name(c)).any(|word| word == name)) {
            violations.push(format!(
                "ARCHITECTURE.md: module `{name}` is not on the map"
            ));
        }
    }
    violations
}

fn crates(files: &[RustFile]) -> Vec<String> {
    let mut rooms: Vec<String> = files
        .iter()
        .filter_map(|file| file.room().map(str::to_owned))
        .collect();
    rooms.sort();
    rooms.dedup();
    rooms
}

#[test]
fn the_map_is_short_and_whole() {
    let Some(map) = text_file("ARCHITECTURE.md") else {
        return;
    };
    let files = rust_files();
    let is_root = |file: &&RustFile| {
        WITH_MODULES
            .iter()
            .any(|room| file.path == format!("crates/{room}/src/lib.rs"))
    };
    let modules: Vec<String> = files.iter().filter(is_root).flat_map(declared).collect();
    assert!(modules.len() > 10, "the ordered crates have more modules");
    crate::assert_none(&check(&map, &crates(&files), &modules));
}

#[test]
fn what_is_not_on_the_map_is_seen() {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    let map = "crates/engine has `time` and `vm/run.rs`, but no wheel.";
    crate::assert_none(&check(map, &names(&["engine"]), &names(&["time", "vm"])));
    crate::assert_one(&check(map, &names(&["port"]), &[]), &["crates/port"]);
    crate::assert_one(&check(map, &[], &names(&["wheel"])), &["`wheel`"]);
    crate::assert_one(&check(map, &[], &names(&["tim"])), &["`tim`"]);
    crate::assert_one(&check(&"\n".repeat(301), &[], &[]), &["301 lines"]);
}
