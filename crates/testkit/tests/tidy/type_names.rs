//! Rule: no two public types of a crate share a name, and few of different crates do: a reader who meets
//! a name knows which type it is.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{RustFile, with_rust_files};
use crate::vocabulary::names;

/// Names that types of several crates still have. The list only shrinks.
const SHARED: [&str; 43] = [
    "Action",
    "Buffers",
    "Capture",
    "Client",
    "Clients",
    "Clock",
    "Condition",
    "Connections",
    "Counters",
    "Distribution",
    "EchoRequest",
    "Echoes",
    "Envelope",
    "Event",
    "Fragment",
    "Group",
    "Instruction",
    "Interface",
    "L7Map",
    "Layout",
    "Link",
    "LinkSettings",
    "Machine",
    "Mode",
    "Operation",
    "Outcome",
    "Profile",
    "Program",
    "ProgramCommand",
    "Rate",
    "Record",
    "Refusal",
    "Reply",
    "Server",
    "Session",
    "Settings",
    "Surroundings",
    "Template",
    "Topology",
    "Transmit",
    "Transport",
    "Tunable",
    "Tunables",
];

/// The places of each public type, by its crate and name, apart from modules that are each other's
/// counterpart by feature.
fn places(files: &[RustFile]) -> BTreeMap<(String, String), Vec<String>> {
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_product()) {
        let Some(crate_name) = file.crate_name() else {
            continue;
        };
        if file.path.ends_with("/absent.rs") {
            continue;
        }
        for (name, line, is_public) in names(file).types {
            if is_public {
                let key = (crate_name.to_owned(), name);
                let place = format!("{}:{line}", file.path);
                places.entry(key).or_default().push(place);
            }
        }
    }
    places
}

fn check_in_crate(files: &[RustFile]) -> Vec<String> {
    let twice = places(files).into_iter();
    twice
        .filter(|(_, places)| places.len() > 1)
        .map(|((_, name), places)| format!("{}: type `{name}` more than once", places.join(", ")))
        .collect()
}

fn check_across(files: &[RustFile], shared: &[&str]) -> Vec<String> {
    let mut crates: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for ((crate_name, name), places) in places(files) {
        crates
            .entry(name)
            .or_default()
            .insert(crate_name, places.join(", "));
    }
    let twice: BTreeMap<_, _> = crates.into_iter().filter(|(_, of)| of.len() > 1).collect();
    let names: BTreeSet<&str> = twice.keys().map(String::as_str).collect();
    let new = twice
        .iter()
        .filter(|(name, _)| !shared.contains(&name.as_str()));
    let mut violations: Vec<String> = new
        .map(|(name, of)| {
            let places: Vec<&str> = of.values().map(String::as_str).collect();
            format!(
                "{}: type `{name}` in several crates; say which in its name",
                places.join(", ")
            )
        })
        .collect();
    let gone = shared.iter().filter(|name| !names.contains(**name));
    violations.extend(gone.map(|name| format!("`{name}` is shared no more: take it from SHARED")));
    violations
}

#[test]
fn public_types_of_a_crate_have_different_names() {
    crate::assert_none(&with_rust_files(check_in_crate));
}

#[test]
fn types_of_several_crates_that_share_a_name_become_fewer() {
    crate::assert_none(&with_rust_files(|files| check_across(files, &SHARED)));
}

#[test]
fn doubles_are_seen() {
    let file = |path: &str, text: &str| RustFile::new(path, text);
    let files = [
        file("crates/engine/src/a.rs", "pub struct Path;\nstruct Side;\n"),
        file("crates/engine/src/b.rs", "pub enum Path {}\nstruct Side;\n"),
        file("crates/port/src/b.rs", "pub enum Path {}\n"),
        file("crates/port/src/c.rs", "pub enum Kind {}\n"),
    ];
    crate::assert_one(&check_in_crate(&files), &["`Path`", "a.rs:1", "b.rs:1"]);
    crate::assert_one(&check_across(&files, &[]), &["`Path`", "several crates"]);
    crate::assert_none(&check_across(&files, &["Path"]));
    crate::assert_one(
        &check_across(&files, &["Path", "Kind"]),
        &["`Kind`", "no more"],
    );
}
