//! Rule: the pure crates read no clock, open no file or socket, start no thread and draw no
//! unseeded randomness, and depend only on crates that do not either.

use crate::manifest::{Manifest, manifests};
use crate::paths::paths;
use crate::source::{RustFile, with_rust_files};

/// The crates that are pure.
const PURE: [&str; 6] = ["bgp", "packet", "engine", "emulation", "l7", "api"];

/// What they must not name. Addresses (`std::net::IpAddr`) and lengths of time
/// (`std::time::Duration`) are plain data and allowed.
const FORBIDDEN: [&[&str]; 16] = [
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
    &["std", "fs"],
    &["std", "net", "TcpStream"],
    &["std", "net", "TcpListener"],
    &["std", "net", "UdpSocket"],
    &["std", "net", "ToSocketAddrs"],
    &["std", "os"],
    &["std", "env"],
    &["std", "thread"],
    &["std", "process"],
    &["std", "io", "stdin"],
    &["std", "io", "stdout"],
    &["std", "io", "stderr"],
    &["rand"],
    &["getrandom"],
];
/// Macros that write where the caller did not ask for it.
const FORBIDDEN_MACROS: [&str; 5] = ["print!", "println!", "eprint!", "eprintln!", "dbg!"];
/// What they may depend on besides our own crates.
const MAY_DEPEND_ON: [&str; 14] = [
    "thiserror",
    "serde",
    "serde_json",
    "schemars",
    "base64",
    "des",
    "hdrhistogram",
    "httparse",
    "md-5",
    "md4",
    "ml-kem",
    "rustc-hash",
    "sha1",
    "strsim",
];

/// What one of them may depend on that is not pure: the keys of TLS cannot be seeded, or they would
/// be no secret. Its clock is given.
const MAY_DRAW_RANDOMNESS: [(&str, &str); 3] = [("l7", "rustls"), ("l7", "ring"), ("l7", "rcgen")];

fn check_files(files: &[RustFile]) -> Vec<String> {
    let mut violations = Vec::new();
    let is_pure = |file: &&RustFile| {
        file.crate_name()
            .is_some_and(|crate_name| PURE.contains(&crate_name))
    };
    for file in files
        .iter()
        .filter(is_pure)
        .filter(|file| file.is_product())
    {
        for path in paths(file) {
            let place = format!("{}:{}", file.path, path.line);
            let named = path.segments.join("::");
            let forbidden = FORBIDDEN.iter().any(|item| path.is_below(item));
            let is_macro = FORBIDDEN_MACROS.contains(&named.as_str());
            if forbidden || is_macro {
                violations.push(format!(
                    "{place}: a pure crate must not use {named}. Take what it gives as an argument"
                ));
            } else if FORBIDDEN.iter().any(|item| path.opens(item)) {
                violations.push(format!(
                    "{place}: {named} has things in it that a pure crate must not use. Import \
                     what you need from it by name"
                ));
            }
        }
    }
    violations
}

fn check_manifests(manifests: &[Manifest]) -> Vec<String> {
    let mut violations = Vec::new();
    for manifest in manifests
        .iter()
        .filter(|m| PURE.contains(&m.crate_name.as_str()))
    {
        for name in &manifest.dependencies {
            let ours = name.starts_with("allosaur-");
            let is_excepted = MAY_DRAW_RANDOMNESS.contains(&(&manifest.crate_name, name));
            if !ours && !is_excepted && !MAY_DEPEND_ON.contains(&name.as_str()) {
                violations.push(format!(
                    "crates/{}/Cargo.toml: {name} is not known to be pure. If it reads no clock, \
                     file, socket or randomness, add it to the list in purity.rs",
                    manifest.crate_name
                ));
            }
        }
    }
    violations
}

#[test]
fn pure_crates_are_pure() {
    crate::assert_none(&with_rust_files(check_files));
    crate::assert_none(&check_manifests(&manifests()));
}

#[test]
fn clocks_files_and_threads_are_seen() {
    let check = |text| check_files(&[RustFile::new("crates/engine/src/vm/run.rs", text)]);
    crate::assert_none(&check(
        "use std::net::{IpAddr, Ipv4Addr}; use std::time::Duration;",
    ));
    crate::assert_none(&check("use std::fmt; use std::collections::*; // std::fs"));
    crate::assert_none(&check("#[cfg(test)] mod tests { use std::fs; }"));
    for (text, named) in [
        ("use std::time::Instant;", "std::time::Instant"),
        (
            "use std::time::{Duration, SystemTime};",
            "std::time::SystemTime",
        ),
        ("use std::fs::File;", "std::fs::File"),
        ("fn f() { std::thread::sleep(x); }", "std::thread::sleep"),
        ("fn f() { m!(std::env::var(x)); }", "std::env::var"),
        ("use std::time;", "std::time"),
        ("use std::net::*;", "std::net::*"),
        ("use std as s;", "std"),
        ("fn f(r: rand::Rng) {}", "rand::Rng"),
        ("fn f() { println!(); }", "println!"),
    ] {
        crate::assert_one(&check(text), &["run.rs:1", named]);
    }
}

#[test]
fn other_crates_may_do_all_that() {
    let text = "use std::fs; fn f() { println!(); }";
    crate::assert_none(&check_files(&[RustFile::new(
        "crates/server/src/sim.rs",
        text,
    )]));
}

#[test]
fn a_dependency_that_is_not_known_is_seen() {
    let manifest = Manifest::new(
        "packet",
        "[dependencies]\nthiserror = \"2\"\ntokio = \"1\"\n",
    );
    crate::assert_one(&check_manifests(&[manifest]), &["crates/packet", "tokio"]);
    let with_tls = |name| [Manifest::new(name, "[dependencies]\nrustls = \"0.23\"\n")];
    crate::assert_none(&check_manifests(&with_tls("l7")));
    crate::assert_one(
        &check_manifests(&with_tls("emulation")),
        &["crates/emulation", "rustls"],
    );
}
