//! Rule: the files of a crate import each other one way, and so do its top-level modules.
//!
//! A file that has others below it (`mod.rs`, `lib.rs`) may import them and they it: it is what they
//! have in common. Circles that are left are on a list with their files, and the list only shrinks.
//!
//! Counted with those parents there are still circles: a parent that hands work down and lends its
//! own types to it. [`WITH_PARENTS`] says how many files of a crate stand in them, and may only fall.

use std::collections::{BTreeMap, BTreeSet};

use crate::paths::paths;
use crate::source::{RustFile, with_rust_files};

/// Circles that are still there: crate, and modules.
const LEFT: [(&str, &[&str]); 0] = [];

/// Circles that parents stand in, too: the files of a crate in such circles, and those of the largest.
/// Crates that are not named have none.
const WITH_PARENTS: [(&str, usize, usize); 5] = [
    ("emulation", 28, 7),
    ("engine", 49, 19),
    ("netdev", 6, 3),
    ("port", 8, 4),
    ("server", 46, 6),
];

type Module = Vec<String>;
/// Which module imports which.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The product files of a crate by their modules.
fn modules<'f>(crate_name: &str, files: &'f [RustFile]) -> BTreeMap<Module, &'f RustFile> {
    let inside = files
        .iter()
        .filter(|file| file.crate_name() == Some(crate_name) && file.is_product());
    inside.map(|file| (file.module(), file)).collect()
}

/// What the files of a crate import from each other, without those that have others below them.
fn imports_of_files(modules: &BTreeMap<Module, &RustFile>) -> Imports {
    let is_parent = |module: &Module| {
        let is_below = |other: &&Module| other.len() > module.len() && other.starts_with(module);
        modules.keys().any(|other| is_below(&other))
    };
    let mut imports = Imports::new();
    for (module, file) in modules.iter().filter(|(module, _)| !is_parent(module)) {
        let found = named(file).filter_map(|path| {
            let lengths = (1..=path.len()).rev();
            let mut prefixes = lengths.map(|length| path[..length].to_vec());
            prefixes.find(|prefix| modules.contains_key(prefix))
        });
        let others = found.filter(|other| other != module && !is_parent(other));
        imports.insert(module.clone(), others.collect());
    }
    imports
}

/// What the top-level modules of a crate import from each other.
fn imports_of_top_level(modules: &BTreeMap<Module, &RustFile>) -> Imports {
    let is_top = |name: &String| modules.keys().any(|module| module.first() == Some(name));
    let mut imports = Imports::new();
    for (module, file) in modules {
        let Some(top) = module.first() else {
            continue;
        };
        let found = named(file).filter_map(|path| path.into_iter().next());
        let others = found.filter(|other| other != top && is_top(other));
        let entry = imports.entry(vec![top.clone()]).or_default();
        entry.extend(others.map(|other| vec![other]));
    }
    imports
}

/// The paths within its crate that a file names, without `crate` in front.
fn named(file: &RustFile) -> impl Iterator<Item = Module> {
    let inside = paths(file).into_iter().filter_map(|path| {
        let (first, rest) = path.segments.split_first()?;
        (first == "crate").then(|| rest.to_vec())
    });
    inside.filter(|path| !path.is_empty())
}

/// The groups of modules that all lead to each other.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = imports
        .keys()
        .map(|module| (module, reached_from(module, imports)))
        .collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for (module, forward) in &reached {
        let mutual = forward.iter().filter(|other| {
            reached
                .get(*other)
                .is_some_and(|back| back.contains(module))
        });
        let circle: Vec<String> = mutual.map(|module| module.join("::")).collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

/// What all files of a crate but its root need of each other: what they import, and of a parent the
/// files below it, which are its parts.
fn imports_with_parents(modules: &BTreeMap<Module, &RustFile>) -> Imports {
    let is_file = |module: &Module| !module.is_empty() && modules.contains_key(module);
    let file_of = |path: Module| {
        let lengths = (1..=path.len()).rev();
        let mut prefixes = lengths.map(|length| path[..length].to_vec());
        prefixes.find(is_file)
    };
    let mut imports = Imports::new();
    for (module, file) in modules.iter().filter(|(module, _)| !module.is_empty()) {
        let found = named(file).filter_map(file_of);
        let parts = modules.keys();
        let parts = parts.filter(|other| other.len() == module.len() + 1);
        let parts = parts.filter(|other| other.starts_with(module)).cloned();
        let others = found.chain(parts).filter(|other| other != module);
        imports.insert(module.clone(), others.collect());
    }
    imports
}

fn check_with_parents(
    crate_name: &str,
    files: &[RustFile],
    allowed: &[(&str, usize, usize)],
) -> Vec<String> {
    let circles = circles(&imports_with_parents(&modules(crate_name, files)));
    let all: usize = circles.iter().map(Vec::len).sum();
    let largest = circles.iter().max_by_key(|circle| circle.len());
    let largest_len = largest.map_or(0, Vec::len);
    let listed = allowed.iter().find(|(listed, _, _)| *listed == crate_name);
    let (_, all_max, largest_max) = *listed.unwrap_or(&(crate_name, 0, 0));
    if all > all_max || largest_len > largest_max {
        let names = largest.map_or(String::new(), |circle| circle.join(", "));
        return vec![format!(
            "{crate_name}: {all} files stand in circles with their parents, at most {largest_len} \
             in one ({names}); allowed are {all_max} and {largest_max}. Put what a parent lends its \
             children into a file of its own"
        )];
    }
    if all < all_max || largest_len < largest_max {
        return vec![format!(
            "{crate_name}: only {all} files stand in circles with their parents, at most \
             {largest_len} in one. Write that into WITH_PARENTS in cycles.rs"
        )];
    }
    Vec::new()
}

fn reached_from<'i>(module: &Module, imports: &'i Imports) -> BTreeSet<&'i Module> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&Module> = imports[module].iter().collect();
    while let Some(next) = waiting.pop() {
        if reached.insert(next) {
            waiting.extend(imports.get(next).into_iter().flatten());
        }
    }
    reached
}

/// A circle is allowed as long as all of it is in one that the list names.
fn check(crate_name: &str, files: &[RustFile], left: &[(&str, &[&str])]) -> Vec<String> {
    let modules = modules(crate_name, files);
    let mut found = circles(&imports_of_files(&modules));
    found.extend(circles(&imports_of_top_level(&modules)));
    let listed = left.iter().filter(|(listed, _)| *listed == crate_name);
    let listed: Vec<&[&str]> = listed.map(|(_, circle)| *circle).collect();
    let is_in = |circle: &[String], listed: &[&str]| {
        circle
            .iter()
            .all(|module| listed.contains(&module.as_str()))
    };
    let mut violations = Vec::new();
    for circle in &found {
        if !listed.iter().any(|listed| is_in(circle, listed)) {
            violations.push(format!(
                "{crate_name}: {} import each other. Put what both need into a file of its own",
                circle.join(", ")
            ));
        }
    }
    for listed in listed {
        if !found.iter().any(|circle| is_in(circle, listed)) {
            violations.push(format!(
                "{crate_name}: {} are no circle any more. Take them from the list in cycles.rs",
                listed.join(", ")
            ));
        }
    }
    violations
}

#[test]
fn files_and_modules_import_one_way() {
    let (has_netdev, violations) = with_rust_files(|files| {
        let names: BTreeSet<&str> = files.iter().filter_map(RustFile::crate_name).collect();
        let found = names.iter().flat_map(|name| check(name, files, &LEFT));
        (names.contains("netdev"), found.collect::<Vec<_>>())
    });
    assert!(has_netdev, "a crate is not seen");
    crate::assert_none(&violations);
}

#[test]
fn circles_with_parents_become_fewer() {
    crate::assert_none(&with_rust_files(|files| {
        let names: BTreeSet<&str> = files.iter().filter_map(RustFile::crate_name).collect();
        let check = |name: &&str| check_with_parents(name, files, &WITH_PARENTS);
        names.iter().flat_map(check).collect::<Vec<_>>()
    }));
}

#[test]
fn circles_with_parents_are_counted() {
    let file = |path: &str, text: &str| RustFile::new(&format!("crates/port/src/{path}"), text);
    let files = [
        file("lib.rs", "mod ring; use ring::A;"),
        file("ring/mod.rs", "mod a; mod b; use a::A; struct Own;"),
        file("ring/a.rs", "use super::Own;"),
        file("ring/b.rs", "use super::a::A;"),
    ];
    let check = |allowed: &[(&str, usize, usize)]| check_with_parents("port", &files, allowed);
    crate::assert_none(&check(&[("port", 3, 3)]));
    let too_many = ["port: 3 files", "ring, ring::a", "allowed are 0 and 0"];
    crate::assert_one(&check(&[]), &too_many);
    crate::assert_one(&check(&[("port", 4, 3)]), &["only 3 files"]);
}

#[test]
fn circles_are_seen_and_the_list_only_shrinks() {
    let file = |path: &str, text: &str| RustFile::new(&format!("crates/port/src/{path}"), text);
    let files = |b: &str| {
        [
            file("lib.rs", "mod ring; mod spread;"),
            file("ring/mod.rs", "mod a; mod b; use b::B;"),
            file("ring/a.rs", "use super::b::B; use super::C;"),
            file("ring/b.rs", b),
            file("spread.rs", "use crate::ring::C;"),
        ]
    };
    let check = |b: &str, left: &[(&str, &[&str])]| check("port", &files(b), left);
    crate::assert_none(&check("use super::C; fn f() { self::g(); }", &[]));
    crate::assert_none(&check(
        "#[cfg(test)] mod t { use super::super::a::A; }",
        &[],
    ));
    for back in ["use super::a::A;", "fn f() { crate::ring::a::g(); }"] {
        crate::assert_one(&check(back, &[]), &["port: ring::a, ring::b import"]);
        crate::assert_none(&check(back, &[("port", &["ring::a", "ring::b"])]));
        crate::assert_one(
            &check(back, &[("engine", &["ring::a", "ring::b"])]),
            &["ring"],
        );
    }
    let left: [(&str, &[&str]); 1] = [("port", &["ring::a", "ring::b"])];
    crate::assert_one(&check("", &left), &["no circle any more"]);
    let above = check("use crate::spread::S;", &[]);
    crate::assert_one(&above, &["port: ring, spread import"]);
}
