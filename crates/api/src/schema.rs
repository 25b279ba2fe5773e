//! The types of the RPC as data: what the schema file holds, and what the reference page and other
//! languages' types are written from.
//!
//! Schemars makes a JSON Schema of each type that a command names; [`Schemas::collect`] puts them
//! together, and [`Shape`] is what of JSON Schema these types use.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::command::{Access, Command};
use crate::method::{Method, Mode};

/// Commands about one thing: a section of the reference page, a module of types.
#[derive(Clone, Debug)]
pub struct Noun {
    /// The section's title.
    pub title: &'static str,
    /// The module's name.
    pub module: &'static str,
    /// The commands.
    pub entries: Vec<Entry>,
}

/// A command, whoever does it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// In which mode of the server it is there.
    pub mode: Mode,
    /// The command.
    pub command: Command<()>,
}

impl From<&Command<Method>> for Entry {
    fn from(command: &Command<Method>) -> Entry {
        Entry {
            mode: command.method.mode(),
            command: command.with_method(()),
        }
    }
}

/// All types, by name, and which of them each command takes and gives.
#[derive(Clone, Debug)]
pub struct Schemas {
    /// The types that have a name.
    pub definitions: BTreeMap<String, Value>,
    /// The nouns, with the shapes of their commands.
    pub nouns: Vec<(Noun, Vec<Shapes>)>,
}

/// What a command takes and gives.
#[derive(Clone, Debug)]
pub struct Shapes {
    /// Its parameters.
    pub request: Value,
    /// Its reply.
    pub reply: Value,
}

impl Schemas {
    /// Makes the schemas of all commands.
    ///
    /// # Panics
    ///
    /// When two types have one name, or one type is written in another way than it is read: a test
    /// of the table calls it.
    pub fn collect(nouns: Vec<Noun>) -> Schemas {
        let mut requests = SchemaSettings::draft2020_12()
            .for_deserialize()
            .into_generator();
        let mut replies = SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator();
        let mut shapes = |entry: &Entry| Shapes {
            request: (entry.command.types.request)(&mut requests).to_value(),
            reply: (entry.command.types.reply)(&mut replies).to_value(),
        };
        let nouns = nouns.into_iter().map(|noun| {
            let shapes = noun.entries.iter().map(&mut shapes).collect();
            (noun, shapes)
        });
        let nouns = nouns.collect();
        Schemas {
            definitions: definitions([requests, replies]),
            nouns,
        }
    }

    /// The fields of a type that has a name, if it is an object.
    pub fn fields(&self, name: &str) -> Option<Vec<Field>> {
        fields(self.definitions.get(name)?)
    }

    /// The fields that do not say what they mean, as `Type.field`.
    pub fn undocumented_fields(&self) -> Vec<String> {
        let silent = self.definitions.keys().flat_map(|name| {
            let fields = self.fields(name).into_iter().flatten();
            let silent = fields.filter(|field| field.doc.is_empty());
            silent.map(move |field| format!("{name}.{}", field.name))
        });
        silent.collect()
    }

    /// What a type that has a name means.
    pub fn doc(&self, name: &str) -> String {
        self.definitions.get(name).map(doc).unwrap_or_default()
    }

    /// A type without its name, unless it is an object.
    pub fn resolve(&self, shape: Shape) -> Shape {
        match &shape {
            Shape::Named(name) if self.fields(name).is_none() => {
                self.resolve(Shape::of(&self.definitions[name]))
            }
            _ => shape,
        }
    }

    /// The schema file of that title: the commands in their order, and the types that they name.
    pub fn document(&self, title: &str) -> Value {
        let commands = self.nouns.iter().flat_map(|(noun, shapes)| {
            let pairs = noun.entries.iter().zip(shapes);
            pairs.map(|(entry, shapes)| {
                json!({
                    "name": entry.command.name,
                    "mode": mode_name(entry.mode),
                    "access": access_name(entry.command.access),
                    "noun": noun.title,
                    "description": entry.command.doc,
                    "errors": entry.command.errors,
                    "example": entry.command.example.to_json(),
                    "request": shapes.request,
                    "reply": shapes.reply,
                })
            })
        });
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": title,
            "commands": commands.collect::<Vec<Value>>(),
            "$defs": self.definitions,
        })
    }
}

fn definitions(generators: [SchemaGenerator; 2]) -> BTreeMap<String, Value> {
    let mut all: BTreeMap<String, Value> = BTreeMap::new();
    for generator in generators {
        for (name, definition) in generator.definitions() {
            let there = all
                .entry(name.clone())
                .or_insert_with(|| definition.clone());
            assert!(
                there == definition,
                "the type {name} of requests is another one in replies: rename one of them by \
                 `#[schemars(rename = ...)]`"
            );
        }
    }
    for name in all.keys() {
        let first = name.trim_end_matches(|last: char| last.is_ascii_digit());
        assert!(
            first == name || !all.contains_key(first),
            "two types have the name {first}: rename one of them by `#[schemars(rename = ...)]`"
        );
    }
    all
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Any => "any",
        Mode::Stateless => "stateless",
        Mode::Stateful => "stateful",
    }
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::Open => "open",
        Access::Api => "api",
        Access::Owner => "owner",
        Access::Context => "context",
    }
}

/// What of JSON Schema the types of the RPC use.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Anything.
    Any,
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number; its type in error messages.
    Integer(&'static str),
    /// A number.
    Double,
    /// A string.
    Text,
    /// One of some strings.
    Choice(Vec<String>),
    /// A list.
    List(Box<Shape>),
    /// A list in which each place has its type.
    Tuple(Vec<Shape>),
    /// An object whose keys are data.
    Map(Box<Shape>),
    /// A type that has a name.
    Named(String),
    /// One of several.
    Either(Vec<Shape>),
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub shape: Shape,
    /// Whether it must be there, or always is.
    pub is_required: bool,
    /// What it is when it is left out, or to what forms of a command it belongs.
    pub default: Option<String>,
    /// What it means.
    pub doc: String,
}

impl Shape {
    /// Reads a schema.
    pub fn of(schema: &Value) -> Shape {
        let Some(schema) = schema.as_object() else {
            return Shape::Any;
        };
        if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
            let name = path.rsplit('/').next().unwrap_or(path);
            return Shape::Named(name.to_owned());
        }
        for several in ["oneOf", "anyOf"] {
            if let Some(Value::Array(schemas)) = schema.get(several) {
                return either(schemas.iter().map(Shape::of).collect());
            }
        }
        match schema.get("type") {
            Some(Value::String(name)) => of_type(name, schema),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                either(names.map(|name| of_type(name, schema)).collect())
            }
            _ => match schema.get("const").and_then(Value::as_str) {
                Some(text) => Shape::Choice(vec![text.to_owned()]),
                None => Shape::Any,
            },
        }
    }

    /// The type's name in error messages: what of it is checked first.
    pub fn kind(&self) -> &'static str {
        match self {
            Shape::Any => "any",
            Shape::Null => "null",
            Shape::Boolean => "boolean",
            Shape::Integer(name) => name,
            Shape::Double => "double",
            Shape::Text | Shape::Choice(_) => "string",
            Shape::List(_) | Shape::Tuple(_) => "array",
            Shape::Map(_) | Shape::Named(_) => "object",
            Shape::Either(shapes) => shapes[0].kind(),
        }
    }
}

/// Choices of several become one choice.
fn either(shapes: Vec<Shape>) -> Shape {
    let mut choices = Vec::new();
    let mut others = Vec::new();
    for shape in shapes {
        match shape {
            Shape::Choice(texts) => choices.extend(texts),
            other => others.push(other),
        }
    }
    if !choices.is_empty() {
        others.insert(0, Shape::Choice(choices));
    }
    match others.len() {
        1 => others.remove(0),
        _ => Shape::Either(others),
    }
}

fn of_type(name: &str, schema: &Map<String, Value>) -> Shape {
    let inner = |name: &str| Box::new(schema.get(name).map_or(Shape::Any, Shape::of));
    match name {
        "null" => Shape::Null,
        "boolean" => Shape::Boolean,
        "integer" => Shape::Integer(match schema.get("format").and_then(Value::as_str) {
            Some("uint8") => "byte",
            Some("uint16") => "uint16",
            Some("uint32") => "uint32",
            Some("uint64" | "uint") => "uint64",
            _ => "int",
        }),
        "number" => Shape::Double,
        "string" => of_strings(schema),
        "array" => match schema.get("prefixItems") {
            Some(Value::Array(places)) => Shape::Tuple(places.iter().map(Shape::of).collect()),
            _ => Shape::List(inner("items")),
        },
        _ => match schema.get("patternProperties") {
            Some(Value::Object(patterns)) => {
                let values = patterns.values().next();
                Shape::Map(Box::new(values.map_or(Shape::Any, Shape::of)))
            }
            _ => Shape::Map(inner("additionalProperties")),
        },
    }
}

fn of_strings(schema: &Map<String, Value>) -> Shape {
    let one = schema.get("const").map(std::slice::from_ref);
    let texts = match schema.get("enum") {
        Some(Value::Array(texts)) => Some(&texts[..]),
        _ => one,
    };
    match texts {
        Some(texts) => {
            let texts = texts.iter().filter_map(Value::as_str);
            Shape::Choice(texts.map(str::to_owned).collect())
        }
        None => Shape::Text,
    }
}

/// The name of the field that stands for those whose names are data.
pub const OTHERS: &str = "*";

/// The fields of an object, if its keys are no data: first those that must be there, in their
/// order, then the others by name.
fn fields(schema: &Value) -> Option<Vec<Field>> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(properties) = properties else {
        let is_empty = schema.get("type") == Some(&json!("object"))
            && schema.get("additionalProperties").is_none()
            && schema.get("patternProperties").is_none();
        return is_empty.then(Vec::new);
    };
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let required: Vec<&str> = required.collect();
    let others = properties.keys().map(String::as_str);
    let others = others.filter(|name| !required.contains(name));
    let names = required.iter().copied().chain(others);
    let fields = names.map(|name| field(name, &properties[name], required.contains(&name)));
    let others = schema.get("additionalProperties");
    let others = others.filter(|others| others.is_object());
    Some(
        fields
            .chain(others.map(|others| Field {
                doc: "The same by name.".to_owned(),
                ..field(OTHERS, others, false)
            }))
            .collect(),
    )
}

fn field(name: &str, schema: &Value, is_required: bool) -> Field {
    let words = |key: &str| schema.get(key).and_then(Value::as_str);
    let default = match (words("x-default"), words("x-only"), schema.get("default")) {
        (Some(words), _, _) => Some(words.to_owned()),
        (None, Some(when), _) => Some(format!("only: {when}")),
        (None, None, Some(value)) => Some(value.to_string()),
        (None, None, None) => None,
    };
    let shape = match Shape::of(schema) {
        // A parameter that is `null` is a parameter that is missing.
        Shape::Either(shapes) if !is_required => {
            either(shapes.into_iter().filter(|s| *s != Shape::Null).collect())
        }
        shape => shape,
    };
    Field {
        name: name.to_owned(),
        shape,
        is_required,
        default,
        doc: doc(schema),
    }
}

/// What a schema says of itself, on one line.
pub fn doc(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    let words = text.unwrap_or_default().split_whitespace();
    words.collect::<Vec<&str>>().join(" ")
}
