//! docs/guide/metrics.md shows every metric as the server declares it.

use std::fmt::Write;
use std::path::PathBuf;

use allosaur_server::metrics::families;

/// Set to write the table into the guide instead of comparing it.
const WRITE_DOCS: &str = "ALLOSAUR_WRITE_DOCS";
const BEGIN: &str = "<!-- metrics";
const END: &str = "<!-- end -->";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/metrics.md")
}

fn table() -> String {
    let mut table = String::from(
        "| metric | kind | labels | meaning | there are series of |\n|---|---|---|---|---|\n",
    );
    for family in families() {
        let labels = family.labels.iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let when = match family.when {
            "" => "always",
            when => when,
        };
        let (name, kind) = (family.series(), family.kind.name());
        let help = family.help.replace('|', "\\|");
        writeln!(table, "| `{name}` | {kind} | {labels} | {help} | {when} |").expect("to a string");
    }
    table
}

#[test]
fn the_guide_shows_every_metric() {
    let guide = std::fs::read_to_string(path()).expect("the guide is there");
    let mark = guide.find(BEGIN).expect("the guide has its marks");
    let start = mark + guide[mark..].find('\n').expect("a line ends") + 1;
    let end = start + guide[start..].find(END).expect("the guide has its marks");
    let mut right = guide.clone();
    right.replace_range(start..end, &table());
    if std::env::var_os(WRITE_DOCS).is_some() {
        std::fs::write(path(), right).expect("the guide can be written");
        return;
    }
    let remedy = "ALLOSAUR_WRITE_DOCS=1 cargo test -p allosaur-server --test guides";
    assert!(guide == right, "the table of the guide is old: {remedy}");
}

#[test]
fn no_two_metrics_share_a_name() {
    let families = families();
    let mut names: Vec<_> = families.iter().map(|family| &family.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), families.len());
}
