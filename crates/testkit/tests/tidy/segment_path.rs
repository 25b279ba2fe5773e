//! Rule: who follows a segment of the fast path from rx queue to tx queue opens few files. They are in the table
//! of docs/concepts/way-of-a-segment.md, with the functions that it passes.

use crate::source::{RustFile, text_file, with_rust_files};

/// The page with the table.
const PAGE: &str = "docs/concepts/way-of-a-segment.md";
/// Most files on the way.
const FILES_MAX: usize = 20;
/// Most lines of all of them, without their test modules.
const LINES_MAX: usize = 7000;

/// A row of the table: a file, and the functions that stand in its other column.
#[derive(Debug, PartialEq, Eq)]
struct Hop {
    path: String,
    functions: Vec<String>,
}

/// What stands in backticks.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The rows whose first column is a file.
fn hops(page: &str) -> Vec<Hop> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let hops = rows.filter_map(|row| {
        let (path, rest) = row.split_once("` |")?;
        path.ends_with(".rs").then(|| Hop {
            path: path.to_owned(),
            functions: codes(rest).map(str::to_owned).collect(),
        })
    });
    hops.collect()
}

fn check(hops: &[Hop], files: &[RustFile]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut lines = 0;
    for Hop { path, functions } in hops {
        let Some(file) = files.iter().find(|file| file.path == *path) else {
            violations.push(format!("{PAGE}: {path} is not there"));
            continue;
        };
        lines += file.lines_without_tests();
        let is_there = |name: &&String| {
            let heads = [format!("fn {name}("), format!("fn {name}<")];
            heads.iter().any(|head| file.text.contains(head))
        };
        for name in functions.iter().filter(|name| !is_there(name)) {
            violations.push(format!("{PAGE}: {path} has no function `{name}`"));
        }
    }
    if hops.len() > FILES_MAX {
        let count = hops.len();
        violations.push(format!("{PAGE}: {count} files; the most is {FILES_MAX}"));
    }
    if lines > LINES_MAX {
        violations.push(format!(
            "{PAGE}: {lines} lines; the most is {LINES_MAX}: move out what a segment of the fast path does not need"
        ));
    }
    violations
}

#[test]
fn a_segment_can_be_followed_through_few_files() {
    let Some(page) = text_file(PAGE) else {
        return;
    };
    let hops = hops(&page);
    assert!(hops.len() > 10, "the way of a segment has more files");
    crate::assert_none(&with_rust_files(move |files| check(&hops, files)));
}

#[test]
fn what_is_wrong_with_the_table_is_seen() {
    let page =
        "| file | what |\n|---|---|\n| `a.rs` | `find`, then `write`. |\n| `find` | no file |\n";
    let hop = |path: &str, functions: &[&str]| Hop {
        path: path.to_owned(),
        functions: functions.iter().map(|&name| name.to_owned()).collect(),
    };
    assert_eq!(hops(page), [hop("a.rs", &["find", "write"])]);
    let files = [
        RustFile::new("a.rs", "fn find() {}\nfn write<T>() {}\n"),
        RustFile::new("b.rs", &"const A: u8 = 0;\n".repeat(LINES_MAX)),
    ];
    crate::assert_none(&check(&hops(page), &files));
    crate::assert_one(&check(&[hop("c.rs", &[])], &files), &["c.rs is not there"]);
    crate::assert_one(&check(&[hop("a.rs", &["fin"])], &files), &["a.rs", "`fin`"]);
    let both = [hop("a.rs", &[]), hop("b.rs", &[])];
    crate::assert_one(&check(&both, &files), &["7002 lines", "7000"]);
    let many: Vec<Hop> = (0..21).map(|_| hop("a.rs", &[])).collect();
    crate::assert_one(&check(&many, &files), &["21 files", "20"]);
}
