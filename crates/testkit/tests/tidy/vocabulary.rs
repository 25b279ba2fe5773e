//! Rule: modules and types have names that the field knows.
//!
//! `docs/glossary.md` says what the words are, and what to write instead of those in [`PRIVATE`].

use syn::visit::{self, Visit};

use crate::source::{RustFile, is_test_only, with_rust_files};

/// Words of our own, which may not be a part of the name of a module or a type.
const PRIVATE: [&str; 32] = [
    "alarm",
    "around",
    "attached",
    "attention",
    "courier",
    "desk",
    "doorbell",
    "doze",
    "facts",
    "gather",
    "gatherer",
    "guests",
    "held",
    "house",
    "inlet",
    "looks",
    "newcomer",
    "news",
    "orders",
    "outlet",
    "outlets",
    "outlook",
    "rest",
    "resting",
    "room",
    "sight",
    "standing",
    "taken",
    "unproven",
    "way",
    "ways",
    "words",
];

/// Words of our own, which may not be a part of the name of a function, a field or a constant, either: the
/// field has others, and they were cured everywhere.
const CURED: [&str; 6] = ["attend", "cover", "hear", "rests", "unusual", "usual"];

/// Where a word stands in its plain meaning, with the reason.
const PLAIN: [(&str, &str, &str); 0] = [];

/// The parts of a name: `FlowOrder`, `flow_order` and `FLOW_ORDER` are `flow`, `order`.
fn parts(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    let is_constant = !name.contains(char::is_lowercase);
    let name = if is_constant { &lower } else { name };
    let mut parts = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            parts.push(String::new());
        }
        if c != '_' {
            let part = parts.last_mut().expect("there is a first part");
            part.extend(c.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The names in a file.
#[derive(Default)]
pub(crate) struct Names {
    /// Of types: name, line, and whether others may see it.
    pub(crate) types: Vec<(String, usize, bool)>,
    /// Of functions, fields and constants, with the line.
    others: Vec<(String, usize)>,
}

impl Names {
    fn add(&mut self, ident: &syn::Ident) {
        self.others
            .push((ident.to_string(), ident.span().start().line));
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test_only(item) {
            return;
        }
        let named = match item {
            syn::Item::Struct(item) => Some((&item.ident, &item.vis)),
            syn::Item::Enum(item) => Some((&item.ident, &item.vis)),
            syn::Item::Trait(item) => Some((&item.ident, &item.vis)),
            syn::Item::Type(item) => Some((&item.ident, &item.vis)),
            _ => None,
        };
        if let Some((ident, visibility)) = named {
            let is_public = matches!(visibility, syn::Visibility::Public(_));
            let line = ident.span().start().line;
            self.types.push((ident.to_string(), line, is_public));
        }
        match item {
            syn::Item::Fn(item) => self.add(&item.sig.ident),
            syn::Item::Const(item) => self.add(&item.ident),
            syn::Item::Static(item) => self.add(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        match item {
            syn::ImplItem::Fn(item) => self.add(&item.sig.ident),
            syn::ImplItem::Const(item) => self.add(&item.ident),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.add(&item.sig.ident);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(ident) = &field.ident {
            self.add(ident);
        }
    }
}

pub(crate) fn names(file: &RustFile) -> Names {
    let mut names = Names::default();
    names.visit_file(&file.syntax);
    names
}

fn private_word(name: &str, words: &[&'static str]) -> Option<&'static str> {
    let parts = parts(name);
    let is_in = |word: &&&str| parts.iter().any(|part| part == **word);
    words.iter().find(is_in).copied()
}

fn check_words(file: &RustFile) -> Vec<String> {
    let mut violations = Vec::new();
    let mut check = |name: &str, line: usize, words: &[&'static str]| {
        let Some(word) = private_word(name, words) else {
            return;
        };
        let is_plain = |(path, plain, _): &(&str, &str, &str)| *path == file.path && *plain == name;
        if !PLAIN.iter().any(is_plain) {
            violations.push(format!(
                "{}:{line}: `{name}`: '{word}' is a private word (docs/glossary.md)",
                file.path
            ));
        }
    };
    if let Some(module) = file.module().last() {
        check(module, 1, &PRIVATE);
        check(module, 1, &CURED);
    }
    let names = names(file);
    for (name, line, _) in names.types {
        check(&name, line, &PRIVATE);
        check(&name, line, &CURED);
    }
    for (name, line) in names.others {
        check(&name, line, &CURED);
    }
    violations
}

#[test]
fn modules_and_types_speak_the_fields_language() {
    let violations: Vec<String> = with_rust_files(|files| {
        let product = files.iter().filter(|file| file.is_product());
        product.flat_map(check_words).collect()
    });
    crate::assert_none(&violations);
}

#[test]
fn private_words_are_seen() {
    let file = |path: &str, text: &str| RustFile::new(path, text);
    let path = "crates/engine/src/stateful/news.rs";
    crate::assert_one(&check_words(&file(path, "")), &["`news`", "private word"]);
    let text = "struct TxOutlet;\nstruct Words;\n#[cfg(test)]\nstruct Room;\n";
    let found = check_words(&file("crates/engine/src/vm/run.rs", text));
    assert_eq!(found.len(), 2, "{found:?}");
    let text = "const USUAL: u8 = 1;\nstruct A { is_usual: bool }\nimpl A { fn take_usual() {} }\n\
                trait B { fn unusual(); }\n#[cfg(test)]\nfn as_usual() {}\n";
    let found = check_words(&file("crates/engine/src/vm/run.rs", text));
    assert_eq!(found.len(), 4, "{found:?}");
    let text = "pub struct Restart;\nstruct Password;\n";
    crate::assert_none(&check_words(&file("crates/engine/src/vm/run.rs", text)));
}
