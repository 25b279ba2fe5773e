//! The paths that a file names: in `use`, in code, in types, inside macros, which are not expanded.
//! `self::` and `super::` are made absolute.

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::source::{RustFile, is_test_only};

/// A path somewhere in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    /// The line, from 1.
    pub(crate) line: usize,
    /// `["crate", "time", "Nanos"]`; a glob ends in `*`.
    pub(crate) segments: Vec<String>,
    /// It stands in a `use`, so that what is below it can be named without it.
    pub(crate) is_use: bool,
}

impl NamedPath {
    /// The path begins with these segments.
    pub(crate) fn is_below(&self, prefix: &[&str]) -> bool {
        self.segments.len() >= prefix.len() && self.agrees(prefix)
    }

    /// A `use` of a module above `item`, through which the item could be named.
    pub(crate) fn opens(&self, item: &[&str]) -> bool {
        let named = self
            .segments
            .iter()
            .filter(|segment| *segment != "*")
            .count();
        self.is_use && named < item.len() && self.agrees(item)
    }

    fn agrees(&self, other: &[&str]) -> bool {
        let mut both = self.segments.iter().zip(other);
        both.all(|(a, b)| a == b || a == "*")
    }
}

/// The paths of a file, except in what is compiled for tests only.
pub(crate) fn paths(file: &RustFile) -> Vec<NamedPath> {
    let mut finder = Finder {
        module: file.module(),
        found: Vec::new(),
    };
    finder.visit_file(&file.syntax);
    finder.found
}

struct Finder {
    /// Where we are, from the crate's root.
    module: Vec<String>,
    found: Vec<NamedPath>,
}

impl Finder {
    fn add(&mut self, line: usize, segments: &[String], is_use: bool) {
        let mut absolute = Vec::new();
        let mut rest = segments;
        if matches!(rest.first().map(String::as_str), Some("self" | "super")) {
            absolute.push("crate".to_owned());
            absolute.extend(self.module.iter().cloned());
        }
        while let Some((first, behind)) = rest.split_first() {
            match first.as_str() {
                "self" if !absolute.is_empty() => {}
                "super" if absolute.len() > 1 => {
                    absolute.pop();
                }
                _ => break,
            }
            rest = behind;
        }
        absolute.extend_from_slice(rest);
        self.found.push(NamedPath {
            line,
            segments: absolute,
            is_use,
        });
    }

    fn add_tree(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let line = tree.span().start().line;
        let with = |name: String| [prefix, &[name]].concat();
        match tree {
            syn::UseTree::Path(path) => self.add_tree(&path.tree, &with(path.ident.to_string())),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(tree, prefix);
                }
            }
            syn::UseTree::Glob(_) => self.add(line, &with("*".to_owned()), true),
            syn::UseTree::Name(syn::UseName { ident })
            | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
                // `use a::b::{self}` is `use a::b`.
                let is_self = ident == "self" && !prefix.is_empty();
                let segments = if is_self {
                    prefix.to_vec()
                } else {
                    with(ident.to_string())
                };
                self.add(line, &segments, true);
            }
        }
    }

    /// Finds paths in the tokens of a macro: names with `::` between them.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut segments: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 && !segments.is_empty() {
                        self.add(line, &std::mem::take(&mut segments), false);
                    }
                    if segments.is_empty() {
                        line = ident.span().start().line;
                    }
                    segments.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    let joint = punct.spacing() == Spacing::Joint;
                    colons = if joint { 1 } else { colons + 1 };
                }
                other => {
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        if !segments.is_empty() {
            self.add(line, &segments, false);
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_only(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(&item.tree, &[]);
    }

    /// `pub(in crate::a)` says who may use an item, and uses nothing of `a`.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.add(path.span().start().line, &segments, false);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        // The macro's own name, marked as such.
        if let Some(last) = item.path.segments.last() {
            let name = format!("{}!", last.ident);
            self.add(item.path.span().start().line, &[name], false);
        }
        self.add_tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let paths = paths(&RustFile::new(path, text));
        paths.iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn use_trees_are_flattened() {
        let text = "use a::{b::{self, C as D}, e::*};";
        assert_eq!(found("a.rs", text), ["a::b", "a::b::C", "a::e::*"]);
    }

    #[test]
    fn relative_paths_become_absolute() {
        let text = "use super::x; mod inner { fn f() { super::super::y(); self::z(); } }";
        let expected = ["crate::vm::x", "crate::vm::y", "crate::vm::run::inner::z"];
        assert_eq!(found("crates/engine/src/vm/run.rs", text), expected);
    }

    #[test]
    fn code_types_and_macros_are_read() {
        let text = "fn f(x: a::B) -> c::D<e::F> { m!(g::h(1), i::J { k: 2 }); l::m() }";
        let found = found("a.rs", text);
        for path in ["a::B", "c::D", "e::F", "m!", "g::h", "i::J", "l::m"] {
            assert!(
                found.contains(&path.to_owned()),
                "{path} is not in {found:?}"
            );
        }
    }

    #[test]
    fn tests_are_left_out() {
        let text = "#[cfg(test)] mod tests { use a::b; } #[cfg(test)] use c::d; use e::f;";
        assert_eq!(found("a.rs", text), ["e::f"]);
    }

    #[test]
    fn a_use_of_a_module_opens_what_is_in_it() {
        let paths = paths(&RustFile::new(
            "a.rs",
            "use a::b; use a::b::*; use a::c; use a::b::d;",
        ));
        let item = ["a", "b", "d"];
        let opens: Vec<bool> = paths.iter().map(|path| path.opens(&item)).collect();
        assert_eq!(opens, [true, true, false, false]);
        let below: Vec<bool> = paths.iter().map(|path| path.is_below(&item)).collect();
        assert_eq!(below, [false, true, false, true]);
    }
}
