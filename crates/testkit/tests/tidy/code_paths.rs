//! Rule: who follows one thing through the code opens few files. Each page of [`PAGES`] has a table of
//! them in their order, with the functions that it passes.

use std::collections::BTreeMap;

use crate::source::{RustFile, TextFile, text_file, text_files, with_rust_files};

/// A page, the most files that its table has, and the most lines of all of them without their tests.
const PAGES: [(&str, usize, usize); 5] = [
    ("docs/concepts/way-of-a-stream.md", 19, 7300),
    ("docs/concepts/way-of-a-segment.md", 20, 7000),
    ("docs/concepts/way-of-a-request.md", 10, 3500),
    ("docs/concepts/way-of-a-counter.md", 5, 1800),
    ("docs/concepts/way-of-an-arp-request.md", 18, 6000),
];

/// A row of a table: a file, and the functions that stand in its other column.
#[derive(Debug, PartialEq, Eq)]
struct Hop {
    path: String,
    functions: Vec<String>,
}

/// A file that a row may name: its text, and its lines without tests.
struct Source {
    text: String,
    lines: usize,
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
        (path.ends_with(".rs") || path.ends_with(".py")).then(|| Hop {
            path: path.to_owned(),
            functions: codes(rest).map(str::to_owned).collect(),
        })
    });
    hops.collect()
}

/// All files that rows may name, by their paths.
fn sources(rust: &[RustFile], python: Vec<TextFile>) -> BTreeMap<String, Source> {
    let rust = rust.iter().map(|file| {
        let lines = file.lines_without_tests();
        let text = file.text.clone();
        (file.path.clone(), Source { text, lines })
    });
    let python = python.into_iter().map(|file| {
        let (lines, text) = (file.text.lines().count(), file.text);
        (file.path, Source { text, lines })
    });
    rust.chain(python).collect()
}

/// Whether a source defines a function or a type of that name, in either language.
fn defines(source: &Source, name: &str) -> bool {
    let heads = [
        format!("fn {name}("),
        format!("fn {name}<"),
        format!("def {name}("),
        format!("class {name}"),
        format!("struct {name}"),
        format!("enum {name}"),
        format!("trait {name}"),
        format!("const {name}:"),
        format!("macro_rules! {name} "),
    ];
    heads.iter().any(|head| source.text.contains(head))
}

fn check(
    (page, files_max, lines_max): (&str, usize, usize),
    hops: &[Hop],
    sources: &BTreeMap<String, Source>,
) -> Vec<String> {
    let mut violations = Vec::new();
    let mut lines = 0;
    for Hop { path, functions } in hops {
        let Some(source) = sources.get(path) else {
            violations.push(format!("{page}: {path} is not there"));
            continue;
        };
        lines += source.lines;
        for name in functions.iter().filter(|name| !defines(source, name)) {
            violations.push(format!("{page}: {path} has no function or type `{name}`"));
        }
    }
    if hops.len() > files_max {
        let count = hops.len();
        violations.push(format!("{page}: {count} files; the most is {files_max}"));
    }
    if lines > lines_max {
        violations.push(format!(
            "{page}: {lines} lines; the most is {lines_max}: move out what this way does not need"
        ));
    }
    violations
}

#[test]
fn each_way_goes_through_few_files() {
    let violations = with_rust_files(|files| {
        let sources = sources(files, text_files("py"));
        let mut violations = Vec::new();
        for limits in PAGES {
            let page = text_file(limits.0).expect("a page of the list is there");
            let hops = hops(&page);
            assert!(hops.len() > 2, "{}: a way has more files", limits.0);
            violations.extend(check(limits, &hops, &sources));
        }
        violations
    });
    crate::assert_none(&violations);
}

#[test]
fn what_is_wrong_with_a_table_is_seen() {
    let page = "| file | what |\n|---|---|\n| `a.rs` | `find`, then `write`. |\n| `find` | no file |\n\
                | `c.py` | `Load`, `read` |\n";
    let hop = |path: &str, functions: &[&str]| Hop {
        path: path.to_owned(),
        functions: functions.iter().map(|&name| name.to_owned()).collect(),
    };
    let found = hops(page);
    let expected = [
        hop("a.rs", &["find", "write"]),
        hop("c.py", &["Load", "read"]),
    ];
    assert_eq!(found, expected);
    let files = [
        RustFile::new("a.rs", "fn find() {}\nfn write<T>() {}\n"),
        RustFile::new("b.rs", &"const A: u8 = 0;\n".repeat(7000)),
    ];
    let python = vec![TextFile {
        path: "c.py".to_owned(),
        text: "class Load:\n    def read(self): ...\n".to_owned(),
    }];
    let sources = sources(&files, python);
    let check = |hops: &[Hop]| check(("page.md", 20, 7000), hops, &sources);
    crate::assert_none(&check(&found));
    crate::assert_one(&check(&[hop("d.rs", &[])]), &["d.rs is not there"]);
    crate::assert_one(&check(&[hop("a.rs", &["fin"])]), &["a.rs", "`fin`"]);
    crate::assert_one(&check(&[hop("c.py", &["Loa("])]), &["c.py", "`Loa(`"]);
    let both = [hop("a.rs", &[]), hop("b.rs", &[])];
    crate::assert_one(&check(&both), &["7002 lines", "7000"]);
    let many: Vec<Hop> = (0..21).map(|_| hop("a.rs", &[])).collect();
    crate::assert_one(&check(&many), &["21 files", "20"]);
}
