//! Rule: `unsafe` lives in `crates/port` and `crates/netdev`, in two files of the server at most, and
//! in the hint of `packet` to the cache.
//!
//! That each block says why it is sound, clippy checks.

use proc_macro2::{TokenStream, TokenTree};

use crate::source::{RustFile, with_rust_files};

/// The crates of `unsafe`: queues shared with others, and the operating system.
const CRATES: [&str; 2] = ["crates/port/", "crates/netdev/"];
/// Other files that may have it, with the reason.
const ALSO: [(&str, &str); 1] = [(PREFETCH, "the standard library's hint is no safe function")];
/// The one file outside of the server that may be among them.
const PREFETCH: &str = "crates/packet/src/prefetch.rs";
/// The most that there may be of the server.
const ALSO_MAX: usize = 2;

/// The lines on which the word stands, in macros too, but not in comments and strings.
fn unsafe_lines(tokens: TokenStream) -> Vec<usize> {
    let mut lines = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "unsafe" => lines.push(ident.span().start().line),
            TokenTree::Group(group) => lines.extend(unsafe_lines(group.stream())),
            _ => {}
        }
    }
    lines
}

fn may_be_unsafe(file: &RustFile) -> bool {
    CRATES.iter().any(|folder| file.path.starts_with(folder))
}

fn check(files: &[RustFile], also: &[(&str, &str)]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| !may_be_unsafe(file)) {
        let tokens: TokenStream = file.text.parse().expect("the file was parsed before");
        let lines = unsafe_lines(tokens);
        let listed = also.iter().any(|(path, _)| *path == file.path);
        let path = &file.path;
        match lines.first() {
            Some(line) if !listed => violations.push(format!(
                "{path}:{line}: unsafe lives in {CRATES:?}. Move the code there, behind a safe type"
            )),
            None if listed => violations.push(format!(
                "{path}: has no unsafe any more. Take it from the list in unsafety.rs"
            )),
            _ => {}
        }
    }
    let others: Vec<&str> = also.iter().map(|(path, _)| *path).collect();
    let others = others.into_iter().filter(|path| *path != PREFETCH);
    let are_of_server = others
        .clone()
        .all(|path| path.starts_with("crates/server/src/"));
    if others.count() > ALSO_MAX || !are_of_server {
        violations.push(format!(
            "unsafety.rs: at most {ALSO_MAX} files beside {PREFETCH}, all of the server"
        ));
    }
    violations
}

#[test]
fn unsafe_stays_in_its_crates() {
    for folder in CRATES {
        let is_there = with_rust_files(move |files| {
            let mut all = files.iter();
            all.any(|file| file.path.starts_with(folder))
        });
        assert!(is_there, "{folder} is not there");
    }
    crate::assert_none(&with_rust_files(|files| check(files, &ALSO)));
}

#[test]
fn unsafe_elsewhere_is_seen() {
    let file = |path, text| [RustFile::new(path, text)];
    let check = |path, text| check(&file(path, text), &[]);
    let path = "crates/server/src/worker.rs";
    crate::assert_none(&check(
        "crates/port/src/ring.rs",
        "fn f() { unsafe { g() } }",
    ));
    crate::assert_none(&check(path, "// unsafe\nfn f() { \"unsafe\"; }"));
    crate::assert_one(
        &check(path, "\nfn f() { unsafe { g() } }"),
        &["worker.rs:2"],
    );
    crate::assert_one(&check(path, "unsafe impl Send for X {}"), &["worker.rs:1"]);
    crate::assert_one(
        &check(path, "#[cfg(test)] mod t { unsafe fn f() {} }"),
        &["worker.rs:1"],
    );
    crate::assert_one(&check(path, "m! { x => unsafe { y } }"), &["worker.rs:1"]);
}

#[test]
fn the_list_stays_short_and_true() {
    let path = "crates/server/src/worker.rs";
    let with = [RustFile::new(path, "fn f() { unsafe { g() } }")];
    let without = [RustFile::new(path, "fn f() {}")];
    crate::assert_none(&check(&with, &[(path, "why")]));
    crate::assert_one(&check(&without, &[(path, "why")]), &["no unsafe any more"]);
    crate::assert_one(
        &check(&[], &[("crates/engine/src/a.rs", "why")]),
        &["all of the server"],
    );
    crate::assert_none(&check(&[], &[(PREFETCH, "why")]));
    let three = ["a", "b", "c"].map(|_| ("crates/server/src/a.rs", "why"));
    crate::assert_one(&check(&[], &three), &["at most 2"]);
}
