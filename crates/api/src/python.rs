//! The replies as Python's types, written from the schemas: a module for each noun.
//!
//! A `TypedDict` is what the client has in its hands anyway, the dictionary that came, with a name for
//! type checkers. Modules, because each is short enough to be read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::schema::{Field, OTHERS, Schemas, Shape};

/// Widest lines.
const COLUMNS: usize = 100;
/// Names that no field of a class may have.
const KEYWORDS: [&str; 8] = [
    "from", "in", "is", "class", "pass", "global", "not", "import",
];

/// The text of each module, by its name. It says that it is written from the command table in `source`.
pub fn modules(schemas: &Schemas, source: &str) -> Vec<(&'static str, String)> {
    let mut homes = BTreeMap::new();
    let mut modules = Vec::new();
    for (noun, shapes) in &schemas.nouns {
        let mut module = Module {
            schemas,
            homes: &mut homes,
            name: noun.module,
            imports: BTreeMap::new(),
            body: String::new(),
        };
        for shapes in shapes {
            let reply = Shape::of(&shapes.reply);
            // What another module has needs no import: nothing here is made of it.
            let is_there = matches!(&reply, Shape::Named(name) if module.homes.contains_key(name));
            if !is_there {
                module.write_reply(&reply);
            }
        }
        if !module.body.is_empty() {
            modules.push((noun.module, module.text(noun.title, source)));
        }
    }
    modules
}

struct Module<'a> {
    schemas: &'a Schemas,
    /// In which module each type is.
    homes: &'a mut BTreeMap<String, &'static str>,
    name: &'static str,
    /// Types of other modules.
    imports: BTreeMap<&'static str, Vec<String>>,
    body: String,
}

impl Module<'_> {
    fn text(self, title: &str, source: &str) -> String {
        let mut text = format!(
            "\"\"\"Replies of the RPC: {}.\n\nWritten from the command table in `{source}`: \
             change it there.\n\"\"\"\n\nfrom __future__ import annotations\n\n",
            title.to_lowercase()
        );
        let typing = ["Any", "Literal", "TypedDict"];
        let used = |name: &&str| self.body.contains(*name);
        let typing: Vec<&str> = typing.into_iter().filter(used).collect();
        let has_optional = self.body.contains("NotRequired[");
        let checking = if has_optional { "TYPE_CHECKING, " } else { "" };
        line(
            &mut text,
            &format!("from typing import {checking}{}", typing.join(", ")),
        );
        // A reply that may be `null` has no name here, and so no use of its type.
        let used = |name: &&String| self.body.contains(name.as_str());
        let imports = self.imports.iter().map(|(module, names)| {
            let mut names: Vec<&str> = names.iter().filter(used).map(String::as_str).collect();
            names.sort_unstable();
            (module, names.join(", "))
        });
        let imports = imports.filter(|(_, names)| !names.is_empty());
        for (count, (module, names)) in imports.enumerate() {
            let space = if count == 0 { "\n" } else { "" };
            line(&mut text, &format!("{space}from .{module} import {names}"));
        }
        if has_optional {
            text.push_str("\nif TYPE_CHECKING:\n    from typing_extensions import NotRequired\n");
        }
        text + &self.body
    }

    /// A reply that is no object has a name here, too.
    fn write_reply(&mut self, reply: &Shape) {
        let value = self.type_name(reply);
        if let Shape::Named(name) = reply {
            if *name != value {
                self.homes.insert(name.clone(), self.name);
                line(&mut self.body, &format!("\n\n{name} = {value}"));
                let doc = self.schemas.doc(name);
                docstring(&mut self.body, "", &doc);
            }
        }
    }

    /// What a type is called here; it is written first, with all that it needs.
    fn type_name(&mut self, shape: &Shape) -> String {
        match shape {
            Shape::Any => "Any".to_owned(),
            Shape::Null => "None".to_owned(),
            Shape::Boolean => "bool".to_owned(),
            Shape::Integer(_) => "int".to_owned(),
            Shape::Double => "float".to_owned(),
            Shape::Text => "str".to_owned(),
            Shape::Choice(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
                format!("Literal[{}]", texts.join(", "))
            }
            Shape::List(element) => format!("list[{}]", self.type_name(element)),
            Shape::Tuple(places) => format!("list[{}]", self.either(places)),
            Shape::Map(value) => format!("dict[str, {}]", self.type_name(value)),
            Shape::Either(shapes) => self.either(shapes),
            Shape::Named(name) => self.named(name),
        }
    }

    fn either(&mut self, shapes: &[Shape]) -> String {
        let mut names: Vec<String> = shapes.iter().map(|shape| self.type_name(shape)).collect();
        names.dedup();
        names.join(" | ")
    }

    fn named(&mut self, name: &str) -> String {
        let Some(fields) = self.schemas.fields(name) else {
            let shape = self.schemas.resolve(Shape::Named(name.to_owned()));
            return self.type_name(&shape);
        };
        match self.homes.get(name) {
            Some(module) if *module == self.name => {}
            Some(module) => {
                let names = self.imports.entry(module).or_default();
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
            None => {
                self.homes.insert(name.to_owned(), self.name);
                self.write(name, &fields);
            }
        }
        name.to_owned()
    }

    fn write(&mut self, name: &str, fields: &[Field]) {
        let typed = fields.iter().map(|field| {
            let value = self.type_name(&field.shape);
            match field.is_required {
                true => (field, value),
                false => (field, format!("NotRequired[{value}]")),
            }
        });
        let typed: Vec<(&Field, String)> = typed.collect();
        let doc = self.schemas.doc(name);
        let is_name = |name: &str| {
            !KEYWORDS.contains(&name)
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if fields.iter().any(|field| field.name == OTHERS) {
            // A TypedDict cannot say that further names are data.
            line(&mut self.body, &format!("\n\n{name} = dict[str, Any]"));
            docstring(&mut self.body, "", &doc);
        } else if fields.iter().all(|field| is_name(&field.name)) {
            line(&mut self.body, &format!("\n\nclass {name}(TypedDict):"));
            docstring(&mut self.body, "    ", &doc);
            for (number, (field, value)) in typed.iter().enumerate() {
                let space = if number == 0 { "\n" } else { "" };
                line(
                    &mut self.body,
                    &format!("{space}    {}: {value}", field.name),
                );
                docstring(&mut self.body, "    ", &field.doc);
            }
        } else {
            let pairs = typed.iter();
            let pairs = pairs.map(|(field, value)| format!("\"{}\": {value}", field.name));
            let pairs: Vec<String> = pairs.collect();
            let pairs = pairs.join(", ");
            line(
                &mut self.body,
                &format!("\n\n{name} = TypedDict(\"{name}\", {{{pairs}}})"),
            );
            docstring(&mut self.body, "", &doc);
        }
    }
}

fn docstring(body: &mut String, indent: &str, doc: &str) {
    let doc = doc.replace('\\', "\\\\");
    let mut lines = vec![format!("{indent}\"\"\"")];
    for word in doc.split_whitespace() {
        let last = lines.last_mut().expect("there is a first");
        let is_first = last.ends_with("\"\"\"") || last.len() == indent.len();
        if !is_first && last.chars().count() + 1 + word.chars().count() + 3 > COLUMNS {
            lines.push(format!("{indent}{word}"));
        } else {
            last.push_str(if is_first { "" } else { " " });
            last.push_str(word);
        }
    }
    line(body, &format!("{}\"\"\"", lines.join("\n")));
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}
