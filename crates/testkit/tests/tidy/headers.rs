//! Rule: every file says at its top what it is about, and no Rust function is named `get_`, but for
//! `get_mut` of collections, as in the standard library.

use syn::visit::{self, Visit};

use crate::source::{RustFile, text_files, with_rust_files};

/// A Rust file opens with `//!`.
fn opens_with_documentation(rust: &str) -> bool {
    let first = rust.lines().next().unwrap_or_default();
    first
        .strip_prefix("//!")
        .is_some_and(|text| !text.trim().is_empty())
}

/// A Python file opens with a docstring, behind comments and empty lines at most.
fn opens_with_docstring(python: &str) -> bool {
    let mut lines = python.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| line.trim_start_matches(['r', 'R']).starts_with("\"\"\""))
}

struct Getters(Vec<String>);

impl<'ast> Visit<'ast> for Getters {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let name = signature.ident.to_string();
        if name.starts_with("get_") && name != "get_mut" {
            self.0.push(name);
        }
        visit::visit_signature(self, signature);
    }
}

fn getters(file: &RustFile) -> Vec<String> {
    let mut getters = Getters(Vec::new());
    getters.visit_file(&file.syntax);
    let remedy = "Name it for what it gives";
    let names = getters.0.into_iter();
    names
        .map(|name| format!("{}: fn {name}. {remedy}", file.path))
        .collect()
}

#[test]
fn every_rust_file_says_what_it_is_about() {
    let silent = |file: &&RustFile| !opens_with_documentation(&file.text);
    let say = |file: &RustFile| {
        let remedy = "open with //! and say in a sentence what it is about";
        format!("{}: {remedy}", file.path)
    };
    let violations: Vec<String> =
        with_rust_files(move |files| files.iter().filter(silent).map(say).collect());
    crate::assert_none(&violations);
}

#[test]
fn every_python_file_says_what_it_is_about() {
    let files = text_files("py");
    assert!(!files.is_empty(), "the project has Python files");
    let silent = files
        .iter()
        .filter(|file| !opens_with_docstring(&file.text));
    let violations: Vec<String> = silent
        .map(|file| {
            format!(
                "{}: open with a docstring and say what it is about",
                file.path
            )
        })
        .collect();
    crate::assert_none(&violations);
}

#[test]
fn no_function_is_named_for_getting() {
    let violations: Vec<String> = with_rust_files(|files| files.iter().flat_map(getters).collect());
    crate::assert_none(&violations);
}

#[test]
fn silent_files_are_seen() {
    assert!(opens_with_documentation("//! A rule.\nfn f() {}"));
    for silent in [
        "",
        "//!\n",
        "// Words.\n//! More.\n",
        "fn f() {}\n",
        "\n//! Late.\n",
    ] {
        assert!(!opens_with_documentation(silent), "{silent:?}");
    }
    for spoken in [
        "\"\"\"Words.\"\"\"",
        "#!/usr/bin/python3\n# Note.\n\nr\"\"\"Words.\"\"\"\n",
    ] {
        assert!(opens_with_docstring(spoken), "{spoken:?}");
    }
    for silent in [
        "",
        "# Words.\n",
        "import os\n\"\"\"Late.\"\"\"\n",
        "'one'\n",
    ] {
        assert!(!opens_with_docstring(silent), "{silent:?}");
    }
}

#[test]
fn getters_are_seen() {
    let getters = |text| getters(&RustFile::new("a.rs", text));
    crate::assert_none(&getters(
        "fn get() {} fn get_mut() {} impl X { fn rate(&self) { map.get_mut(k); } }",
    ));
    crate::assert_one(
        &getters("impl X { fn get_rate(&self) {} }"),
        &["a.rs", "get_rate"],
    );
}
