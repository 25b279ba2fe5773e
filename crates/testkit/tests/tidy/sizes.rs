//! Rule: files and functions stay small. What is past the line is on a list with a reason, and
//! the list only shrinks. Those of Python are checked in tests/tidy.

use syn::visit::{self, Visit};

use crate::source::{RustFile, line_count, with_rust_files};

/// Most lines of a file, without its test modules.
const FILE_LINES_MAX: usize = 800;
/// Most lines of a function, from its first brace to its last.
const FUNCTION_LINES_MAX: usize = 70;

/// What may be larger: `path` or `path::function`, the lines that it has, and why.
const LARGER: [(&str, usize, &str); 0] = [];

/// Something with a size.
#[derive(Debug)]
struct Sized {
    /// `path` or `path::function`.
    name: String,
    lines: usize,
    max: usize,
}

struct Functions<'a> {
    path: &'a str,
    found: Vec<Sized>,
}

impl Functions<'_> {
    fn add(&mut self, name: &syn::Ident, lines: usize) {
        self.found.push(Sized {
            name: format!("{}::{name}", self.path),
            lines,
            max: FUNCTION_LINES_MAX,
        });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig.ident, line_count(&function.block));
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig.ident, line_count(&function.block));
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig.ident, line_count(body));
        }
        visit::visit_trait_item_fn(self, function);
    }
}

fn rust_sizes(file: &RustFile) -> Vec<Sized> {
    let mut functions = Functions {
        path: &file.path,
        found: Vec::new(),
    };
    functions.visit_file(&file.syntax);
    let mut sizes = functions.found;
    sizes.push(Sized {
        name: file.path.clone(),
        lines: file.lines_without_tests(),
        max: FILE_LINES_MAX,
    });
    sizes
}

fn check(sizes: &[Sized], larger: &[(&str, usize, &str)]) -> Vec<String> {
    let mut violations = Vec::new();
    for Sized { name, lines, max } in sizes {
        let listed = larger.iter().find(|(listed, ..)| listed == name);
        match listed {
            None if lines > max => violations.push(format!(
                "{name}: {lines} lines; the most is {max}. Split it by what its parts are about"
            )),
            Some((_, allowed, _)) if lines > allowed => violations.push(format!(
                "{name}: grew to {lines} lines from {allowed}, which was too large already"
            )),
            Some(_) if lines <= max => violations.push(format!(
                "{name}: has only {lines} lines. Take it from the list in sizes.rs"
            )),
            Some((_, allowed, _)) if lines < allowed => violations.push(format!(
                "{name}: shrank to {lines} lines. Say so in the list in sizes.rs"
            )),
            _ => {}
        }
    }
    for (name, ..) in larger {
        if !sizes.iter().any(|size| size.name == *name) {
            violations.push(format!(
                "{name}: is gone. Take it from the list in sizes.rs"
            ));
        }
    }
    for (name, _, reason) in larger {
        if reason.is_empty() {
            violations.push(format!("{name}: the list in sizes.rs does not say why"));
        }
    }
    violations
}

#[test]
fn files_and_functions_stay_small() {
    let sizes: Vec<Sized> = with_rust_files(|files| files.iter().flat_map(rust_sizes).collect());
    crate::assert_none(&check(&sizes, &LARGER));
}

#[test]
fn a_long_function_is_seen_wherever_it_is() {
    let body = |lines: usize| format!("{{{}}}", "\n".repeat(lines - 1));
    for (before, after) in [
        ("", ""),
        ("impl X { ", " }"),
        ("trait X { ", " }"),
        ("mod x { ", " }"),
    ] {
        let file = |lines| format!("{before}fn f() {}{after}", body(lines));
        let check = |lines| check(&rust_sizes(&RustFile::new("a.rs", &file(lines))), &[]);
        crate::assert_none(&check(FUNCTION_LINES_MAX));
        crate::assert_one(
            &check(FUNCTION_LINES_MAX + 1),
            &["a.rs::f", "71 lines", "70"],
        );
    }
}

#[test]
fn a_long_file_is_seen_but_its_tests_are_free() {
    let long = "const A: u8 = 0;\n".repeat(FILE_LINES_MAX);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
    let check = |text: &str| check(&rust_sizes(&RustFile::new("a.rs", text)), &[]);
    crate::assert_none(&check(&format!("{long}{tests}")));
    crate::assert_one(&check(&format!("{long}\n")), &["a.rs", "801 lines"]);
}

#[test]
fn the_list_only_shrinks() {
    let sizes = |lines| {
        [Sized {
            name: "a".to_owned(),
            lines,
            max: 70,
        }]
    };
    let list = [("a", 90, "one list of steps")];
    crate::assert_none(&check(&sizes(90), &list));
    crate::assert_one(&check(&sizes(91), &list), &["grew to 91"]);
    crate::assert_one(&check(&sizes(80), &list), &["shrank to 80"]);
    crate::assert_one(&check(&sizes(70), &list), &["only 70 lines"]);
    crate::assert_one(&check(&[], &list), &["is gone"]);
    crate::assert_one(&check(&sizes(90), &[("a", 90, "")]), &["does not say why"]);
}
