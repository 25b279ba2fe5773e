//! Rule: ARCHITECTURE.md is a map that can be read in ten minutes: short, with every crate and every
//! module of the ordered crates, in short paragraphs, with links that lead somewhere; and every
//! decision is in the list of decisions.

use allosaur_testkit::data::workspace_root;

use crate::module_order::declared;
use crate::source::{RustFile, text_file, with_rust_files};

/// Most words of the map.
const WORDS_MAX: usize = 1500;
/// Most characters of a line that is neither in a table nor in a drawing.
const COLUMNS_MAX: usize = 100;
/// Most words of a paragraph or of an item of a list.
const PARAGRAPH_WORDS_MAX: usize = 60;
/// The crates whose modules are on it.
const WITH_MODULES: [&str; 2] = ["engine", "server"];

fn check(map: &str, crates: &[String], modules: &[String]) -> Vec<String> {
    let mut violations = check_form("ARCHITECTURE.md", map);
    let words = map.split_whitespace().count();
    if words > WORDS_MAX {
        violations.push(format!(
            "ARCHITECTURE.md: {words} words; the most is {WORDS_MAX}: decisions have pages of \
             their own"
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

/// Lines and paragraphs of a page, without its drawings and tables.
fn check_form(path: &str, page: &str) -> Vec<String> {
    let mut violations = Vec::new();
    let mut in_drawing = false;
    let mut words = 0;
    for (number, line) in (1..).zip(page.lines()) {
        if line.starts_with("```") {
            in_drawing = !in_drawing;
        }
        let is_text = !in_drawing && !line.starts_with('|') && !line.starts_with("```");
        let begins = line.trim().is_empty() || is_item(line.trim_start()) || !is_text;
        if begins {
            words = 0;
        }
        if !is_text {
            continue;
        }
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && !line.contains("](") {
            violations.push(format!(
                "{path}:{number}: {columns} columns; the most is {COLUMNS_MAX}"
            ));
        }
        let before = words;
        words += line.split_whitespace().count();
        if before <= PARAGRAPH_WORDS_MAX && words > PARAGRAPH_WORDS_MAX {
            violations.push(format!(
                "{path}:{number}: a paragraph of more than {PARAGRAPH_WORDS_MAX} words"
            ));
        }
    }
    violations
}

/// `- text`, or `1. text`.
fn is_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || digits.len() < line.len() && digits.starts_with(". ")
}

/// What the links of a page lead to, without those to other places of the net.
fn links(page: &str) -> Vec<&str> {
    let behind = page.split("](").skip(1);
    let targets = behind.filter_map(|text| text.split(')').next());
    targets
        .filter(|target| !target.contains("://"))
        .map(|target| target.split('#').next().unwrap_or(target))
        .filter(|target| !target.is_empty())
        .collect()
}

fn crates(files: &[RustFile]) -> Vec<String> {
    let mut names: Vec<String> = files
        .iter()
        .filter_map(|file| file.crate_name().map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn the_map_is_short_and_complete() {
    let Some(map) = text_file("ARCHITECTURE.md") else {
        return;
    };
    let is_root = |file: &&RustFile| {
        WITH_MODULES
            .iter()
            .any(|name| file.path == format!("crates/{name}/src/lib.rs"))
    };
    let (modules, crates) = with_rust_files(move |files| {
        let roots = files.iter().filter(is_root);
        (roots.flat_map(declared).collect::<Vec<_>>(), crates(files))
    });
    assert!(modules.len() > 10, "the ordered crates have more modules");
    crate::assert_none(&check(&map, &crates, &modules));
}

#[test]
fn links_of_the_map_lead_somewhere_and_decisions_are_listed() {
    let root = workspace_root();
    let Some(map) = text_file("ARCHITECTURE.md") else {
        return;
    };
    let list = text_file("docs/decisions/README.md").expect("the list of decisions");
    let mut violations = Vec::new();
    for target in links(&map) {
        if !root.join(target).exists() {
            violations.push(format!("ARCHITECTURE.md: {target} is not there"));
        }
    }
    let listed = links(&list);
    let folder = root.join("docs/decisions");
    for entry in std::fs::read_dir(&folder).expect("docs/decisions can be read") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy().into_owned();
        if name != "README.md" && !listed.contains(&name.as_str()) {
            violations.push(format!("docs/decisions/README.md: {name} is not listed"));
        }
        let page = text_file(&format!("docs/decisions/{name}")).expect("a page");
        violations.extend(check_form(&format!("docs/decisions/{name}"), &page));
    }
    for target in listed {
        if !folder.join(target).exists() {
            violations.push(format!("docs/decisions/README.md: {target} is not there"));
        }
    }
    crate::assert_none(&violations);
}

#[test]
fn what_is_wrong_with_a_map_is_seen() {
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
    crate::assert_one(&check(&"a\n\n".repeat(1501), &[], &[]), &["1501 words"]);
    let wide = "x".repeat(101);
    crate::assert_one(&check_form("p", &wide), &["p:1", "101 columns"]);
    crate::assert_none(&check_form("p", &format!("```\n{wide}\n```\n| {wide} |")));
    let long = "word ".repeat(18).trim_end().to_owned();
    let paragraph = format!("{long}\n{long}\n{long}\n{long}");
    crate::assert_one(&check_form("p", &paragraph), &["p:4", "60 words"]);
    let items = format!("1. {long}\n{long}\n2. {long}\n{long}\n\n{long}\n{long}");
    crate::assert_none(&check_form("p", &items));
    let page = "[a](a.md#x), [b](https://b) and [c](#c)";
    assert_eq!(links(page), ["a.md"]);
}
