//! Rule: the modules of `engine`, of `emulation` and of `server` stand in an order.
//!
//! The order is written in the documentation of the crate's `lib.rs`, behind the words
//! [`PHRASE`]; a module imports only from those before it.

use crate::paths::paths;
use crate::source::{RustFile, is_test_only, with_rust_files};

/// The crates that have an order.
const ORDERED: [&str; 3] = ["engine", "emulation", "server"];
/// The words in front of the list, as far as they are fixed.
const PHRASE: &str = "The modules stand in an order";

/// The documentation at the top of a file, in one line.
fn documentation(file: &RustFile) -> String {
    let lines = file.text.lines().take_while(|line| line.starts_with("//!"));
    let lines: Vec<&str> = lines
        .map(|line| line.trim_start_matches("//!").trim())
        .collect();
    lines.join(" ")
}

/// The names in backticks from the colon behind [`PHRASE`] to the next full stop.
pub(crate) fn order(file: &RustFile) -> Option<Vec<String>> {
    let documentation = documentation(file);
    let (_, behind) = documentation.split_once(PHRASE)?;
    let (_, list) = behind.split_once(':')?;
    let list = list.split_once('.').map_or(list, |(list, _)| list);
    let names = list.split('`').skip(1).step_by(2);
    Some(names.map(str::to_owned).collect())
}

/// The modules that a crate's root declares, without those for tests.
pub(crate) fn declared(file: &RustFile) -> Vec<String> {
    let items = file.syntax.items.iter().filter(|item| !is_test_only(item));
    let modules = items.filter_map(|item| match item {
        syn::Item::Mod(item) => Some(item.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

fn check(crate_name: &str, files: &[RustFile]) -> Vec<String> {
    let root_path = format!("crates/{crate_name}/src/lib.rs");
    let Some(root) = files.iter().find(|file| file.path == root_path) else {
        return vec![format!("{root_path}: is not there")];
    };
    let Some(order) = order(root) else {
        return vec![format!(
            "{root_path}: say '{PHRASE}, ...: `a`, `b`.' at its top"
        )];
    };
    let mut violations = check_list(&root_path, &order, &declared(root));
    let in_crate = files
        .iter()
        .filter(|file| file.crate_name() == Some(crate_name) && file.is_product());
    for file in in_crate {
        check_file(file, &order, &mut violations);
    }
    violations
}

fn check_list(root_path: &str, order: &[String], declared: &[String]) -> Vec<String> {
    let mut violations = Vec::new();
    for name in declared.iter().filter(|name| !order.contains(name)) {
        violations.push(format!(
            "{root_path}: the order does not name module `{name}`"
        ));
    }
    for name in order.iter().filter(|name| !declared.contains(name)) {
        violations.push(format!(
            "{root_path}: the order names `{name}`, which is no module"
        ));
    }
    violations
}

fn check_file(file: &RustFile, order: &[String], violations: &mut Vec<String>) {
    // The root is above all modules.
    let Some(module) = file.module().into_iter().next() else {
        return;
    };
    let Some(rank) = order.iter().position(|name| *name == module) else {
        return;
    };
    for path in paths(file) {
        let [first, name, ..] = &path.segments[..] else {
            continue;
        };
        if first != "crate" {
            continue;
        }
        let problem = match order.iter().position(|other| other == name) {
            Some(other) if other <= rank => continue,
            Some(_) => format!("`{module}` stands before `{name}` and must not import it"),
            None => format!("`crate::{name}` is no module: name the module that it comes from"),
        };
        violations.push(format!("{}:{}: {problem}", file.path, path.line));
    }
}

#[test]
fn modules_import_from_those_before_them() {
    for crate_name in ORDERED {
        let violations = with_rust_files(move |files| check(crate_name, files));
        crate::assert_none(&violations);
    }
}

const ROOT: &str = "//! The engine.\n//!\n//! The modules stand in an order, and so on:\n\
                    //! `time`, `rng`,\n//! `vm`. More about `nothing`.\n\
                    pub mod vm;\nmod rng;\nmod time;\n#[cfg(test)]\nmod tests;\n";

fn check_example(path: &str, text: &str) -> Vec<String> {
    let files = [("crates/engine/src/lib.rs", ROOT), (path, text)];
    check(
        "engine",
        &files.map(|(path, text)| RustFile::new(path, text)),
    )
}

#[test]
fn the_list_may_span_lines_and_ends_at_the_full_stop() {
    let root = RustFile::new("crates/engine/src/lib.rs", ROOT);
    assert_eq!(
        order(&root),
        Some(["time", "rng", "vm"].map(str::to_owned).to_vec())
    );
}

#[test]
fn an_import_from_behind_is_seen() {
    let path = "crates/engine/src/rng/mod.rs";
    crate::assert_none(&check_example(
        path,
        "use crate::time::Nanos; use crate::rng::x;",
    ));
    crate::assert_none(&check_example(
        path,
        "#[cfg(test)] mod t { use crate::vm; }",
    ));
    crate::assert_one(
        &check_example(path, "\nuse crate::vm::Program;"),
        &["mod.rs:2", "`vm`"],
    );
    crate::assert_one(
        &check_example(path, "fn f() { super::vm::run(); }"),
        &["`vm`"],
    );
    crate::assert_one(&check_example(path, "use crate::{time, vm};"), &["`vm`"]);
    crate::assert_one(
        &check_example(path, "use crate::StatelessEngine;"),
        &["is no module"],
    );
    crate::assert_one(
        &check_example(path, "fn f() { m!(crate::vm::x); }"),
        &["`vm`"],
    );
}

#[test]
fn a_module_that_the_list_forgets_is_seen() {
    let check = |root: &str| check("engine", &[RustFile::new("crates/engine/src/lib.rs", root)]);
    crate::assert_none(&check(ROOT));
    crate::assert_one(
        &check(&format!("{ROOT}mod new;")),
        &["does not name", "`new`"],
    );
    crate::assert_one(
        &check(&ROOT.replace("mod rng;", "")),
        &["`rng`", "no module"],
    );
    crate::assert_one(&check("//! No order.\nmod a;"), &[PHRASE]);
}
