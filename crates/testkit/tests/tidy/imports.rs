//! Rule: imports between the crates go down only, and engine and ports meet in few places.

use crate::manifest::{Manifest, manifests};
use crate::paths::paths;
use crate::source::{RustFile, with_rust_files};

/// Which crate may import which.
const MAY_IMPORT: [(&str, &[&str]); 12] = [
    ("bgp", &[]),
    ("packet", &[]),
    ("engine", &["packet"]),
    ("l7", &["packet", "engine"]),
    ("emulation", &["packet", "engine", "l7", "api"]),
    ("netdev", &[]),
    ("nodes", &["netdev"]),
    ("port", &["packet", "netdev"]),
    ("no-schema", &[]),
    ("api", &["no-schema"]),
    (
        "server",
        &[
            "bgp",
            "packet",
            "engine",
            "emulation",
            "l7",
            "netdev",
            "nodes",
            "port",
            "api",
        ],
    ),
    ("testkit", &["packet", "engine", "netdev"]),
];

/// What the names of our crates begin with.
const PREFIX: &str = "allosaur-";

/// Modules of the server that may know both the engine and the ports: the one in which frames pass
/// from one to the other, and the one that measures them.
const MEETING_PLACES: [&str; 2] = ["threads", "bench"];

fn may_import(crate_name: &str) -> Option<&'static [&'static str]> {
    let (_, allowed) = MAY_IMPORT.iter().find(|(name, _)| *name == crate_name)?;
    Some(allowed)
}

/// Manifests that depend upwards or sideways. Any crate's tests may use the test kit.
fn check_manifests(manifests: &[Manifest]) -> Vec<String> {
    let mut violations = Vec::new();
    for manifest in manifests {
        let crate_name = &manifest.crate_name;
        let Some(allowed) = may_import(crate_name) else {
            violations.push(format!(
                "crates/{crate_name}: a new crate. Say what it may import"
            ));
            continue;
        };
        let in_tests = manifest
            .dev_dependencies
            .iter()
            .filter(|n| *n != "allosaur-testkit");
        for name in manifest.dependencies.iter().chain(in_tests) {
            let ours = name.strip_prefix(PREFIX);
            if ours.is_some_and(|other| !allowed.contains(&other)) {
                violations.push(format!(
                    "crates/{crate_name}/Cargo.toml: {crate_name} must not depend on {name}; it may import \
                     {allowed:?}"
                ));
            }
        }
    }
    violations
}

/// Files that name a crate which their own may not import.
fn check_files(files: &[RustFile]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_product()) {
        let Some((crate_name, allowed)) = file.crate_name().and_then(|r| Some((r, may_import(r)?)))
        else {
            continue;
        };
        for path in paths(file) {
            let first = path.segments.first().map_or("", String::as_str);
            let Some(other) = first.strip_prefix("allosaur_") else {
                continue;
            };
            // A package's name has dashes where its crate's has underscores.
            let other = other.replace('_', "-");
            if other != crate_name && !allowed.contains(&other.as_str()) {
                let (place, line) = (&file.path, path.line);
                violations.push(format!(
                    "{place}:{line}: {crate_name} must not name {first}; it may import {allowed:?}"
                ));
            }
        }
    }
    violations
}

/// Other modules of the server in which engine and ports meet.
fn check_meetings(files: &[RustFile]) -> Vec<String> {
    let mut violations = Vec::new();
    let server = files
        .iter()
        .filter(|file| file.crate_name() == Some("server"));
    for file in server.filter(|file| file.is_product()) {
        let module = file.module().into_iter().next().unwrap_or_default();
        let paths = paths(file);
        let knows = |name| paths.iter().any(|path| path.is_below(&[name]));
        let both = knows("allosaur_engine") && knows("allosaur_port");
        if both && !MEETING_PLACES.contains(&module.as_str()) {
            violations.push(format!(
                "{}: engine and ports meet only in {MEETING_PLACES:?}. Let one of those pass on \
                 what is needed here",
                file.path
            ));
        }
    }
    violations
}

#[test]
fn crates_import_downwards_only() {
    crate::assert_none(&check_manifests(&manifests()));
    crate::assert_none(&with_rust_files(check_files));
    crate::assert_none(&with_rust_files(check_meetings));
}

#[test]
fn a_manifest_that_points_upwards_is_seen() {
    let engine = |dependencies: &str| [Manifest::new("engine", dependencies)];
    crate::assert_none(&check_manifests(&engine(
        "[dependencies]\nallosaur-packet.workspace = true\nthiserror = \"2\"\n\
         [dev-dependencies]\nallosaur-testkit.workspace = true\n",
    )));
    let upwards = engine("[dependencies]\nallosaur-port.workspace = true\n");
    crate::assert_one(
        &check_manifests(&upwards),
        &["crates/engine", "allosaur-port"],
    );
    let in_product = engine("[dependencies]\nallosaur-testkit.workspace = true\n");
    crate::assert_one(&check_manifests(&in_product), &["allosaur-testkit"]);
    crate::assert_one(
        &check_manifests(&[Manifest::new("unheard", "")]),
        &["a new crate"],
    );
}

#[test]
fn a_file_that_names_another_crate_is_seen() {
    let file = |text| [RustFile::new("crates/port/src/memory/mod.rs", text)];
    crate::assert_none(&check_files(&file("use allosaur_packet::frame;")));
    crate::assert_none(&check_files(&file(
        "#[cfg(test)] mod t { use allosaur_engine::x; }",
    )));
    let in_code = check_files(&file("\nfn f() { allosaur_engine::time::SECOND; }"));
    crate::assert_one(&in_code, &["mod.rs:2", "allosaur_engine", "packet"]);
}

#[test]
fn a_meeting_elsewhere_is_seen() {
    let both = "use allosaur_engine::StatelessEngine; use allosaur_port::memory;";
    let check = |path, text| check_meetings(&[RustFile::new(path, text)]);
    crate::assert_none(&check("crates/server/src/threads/data/mod.rs", both));
    crate::assert_none(&check(
        "crates/server/src/control/mod.rs",
        "use allosaur_engine::Event;",
    ));
    let violations = check("crates/server/src/control/mod.rs", both);
    crate::assert_one(&violations, &["control/mod.rs", "threads"]);
}
