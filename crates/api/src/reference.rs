//! The reference page of the RPC, written from the command table.

use crate::command::{Access, Command, Example};
use crate::commands::streams::stream_fields;
use crate::events::Event;
use crate::limits;
use crate::schema::{Field, Schemas, Shape, Shapes, doc};
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::fmt::Write as _;

const INTRODUCTION: &str = "# The RPC

For programmers of clients: every command, its parameters, its reply, and when it is refused.

## Messages

Requests go from a ZeroMQ REQ socket to port 4501 (unless told otherwise), one JSON-RPC 2.0 request or
a list of them in one frame. A list is worked off in order and answered by a list; a list of one
is answered by its only reply, and an empty one by `null`. Every request has an `id` that is not
`null`, and `params`, which is an object.

A message may be compressed: 4 bytes `AB E8 5C EA`, 4 bytes of the plain length in big endian, then
a zlib stream. A reply is compressed when the request was. A request may have 999,999 bytes,
compressed and plain.

The server publishes on a ZeroMQ PUB socket (port 4500): the two bytes `{}` when a session has new
events to fetch, and twice a second a frame `trex-global` with all counters and rates. Once no
request has come for a minute, `trex-global` pauses until the next one.

Types are strict: `byte`, `uint32` and `uint64` are whole numbers in their range, `double` is any
number, `boolean` is `true` or `false`. A field that is `null` is a field that is missing.

Commands marked **api** need `api_h` from the handshake (`api_sync_v2`) among their parameters.
Commands marked **owner** also need the `handler` that `acquire` answered for the port. In stateful
mode the server has one owner, with all its ports: commands marked **owner of the server** need the
`handler` of this `acquire`, and those of ports the one that it answered for the port.

A server is in stateless or in stateful mode. `acquire`, `release`, `service` and `get_profile_list` are
other commands in each; what is described below as *Stateful mode* is there in stateful mode only.

## Errors

| code | message | when |
|---|---|---|
| -32700 | Bad JSON Format | the message is not JSON |
| -32600 | Missing 'id' field, ... | the JSON is not a request |
| -32601 | Method ... not registered | there is no such method |
| -32602 | Bad parameters for method | a parameter is missing or wrong; `specific_err` names it |
| -32603 | Request is too large ... | the message is too large |
| -32000 | Failed To Execute Method | the server refuses; `specific_err` says why and what to do |
";

/// For who opens the file, not for who reads the page.
const WRITTEN: &str = "
<!-- Written from the command table in `crates/api`: change it there, then run
`ALLOSAUR_WRITE_DOCS=1 cargo test -p allosaur-api --test table`. -->
";

/// The whole page, in Markdown.
pub fn markdown(schemas: &Schemas) -> String {
    let mut page = INTRODUCTION.to_owned();
    write_limits(&mut page);
    write_events(&mut page);
    write_commands(&mut page, schemas);
    write_stream(&mut page);
    page.push_str(WRITTEN);
    page
}

/// Writes the sections of a page with all commands, one for each noun.
pub fn write_commands(page: &mut String, schemas: &Schemas) {
    for (noun, shapes) in &schemas.nouns {
        page.push_str(&format!("\n## {}\n", noun.title));
        for (entry, shapes) in noun.entries.iter().zip(shapes) {
            let types = Types { schemas, shapes };
            types.write_command(page, &entry.command);
        }
    }
}

fn write_limits(page: &mut String) {
    page.push_str("\n## Limits\n\n| what | most | beyond it |\n|---|---|---|\n");
    for (what, most, beyond) in limits::table() {
        line(page, format_args!("| {what} | {most} | {beyond} |"));
    }
}

fn write_events(page: &mut String) {
    page.push_str("\n## Event types\n\n| type | when | data |\n|---|---|---|\n");
    for of_type in event_types() {
        let EventType { id, when, fields } = of_type;
        line(
            page,
            format_args!("| {id} | {when} | {} |", fields.join(", ")),
        );
    }
    page.push_str(
        "\nAn event is `{\"name\": \"trex-event\", \"type\": n, \"data\": {...}, \"seq\": n}`. \
         `seq` counts from 0 in each session, without gaps.\n",
    );
}

/// The types of one command.
struct Types<'a> {
    schemas: &'a Schemas,
    shapes: &'a Shapes,
}

impl Types<'_> {
    fn write_command(&self, page: &mut String, command: &Command<()>) {
        let access = match command.access {
            Access::Open => "",
            Access::Api => " (api)",
            Access::Owner => " (owner)",
            Access::Context => " (owner of the server)",
        };
        line(page, format_args!("\n### `{}`{access}\n", command.name));
        line(page, format_args!("{}\n", command.doc));
        self.write_params(page);
        self.write_reply(page);
        if !command.errors.is_empty() {
            let errors = command.errors.join("; ");
            line(page, format_args!("\nRefused when: {errors}."));
        }
        let Example { params, result } = command.example;
        line(page, format_args!("\n```json\n{params}\n{result}\n```"));
    }

    fn write_params(&self, page: &mut String) {
        let mut rows = Vec::new();
        self.rows(&mut rows, "", &Shape::of(&self.shapes.request), &[]);
        if rows.is_empty() {
            return;
        }
        page.push_str("| parameter | type | default | meaning |\n|---|---|---|---|\n");
        for (path, field) in rows {
            let kind = self.type_name(&field.shape);
            let default = field.default.unwrap_or_default();
            row(page, &[&format!("`{path}`"), &kind, &default, &field.doc]);
        }
        page.push('\n');
    }

    fn write_reply(&self, page: &mut String) {
        let shape = Shape::of(&self.shapes.reply);
        let mut rows = Vec::new();
        self.rows(&mut rows, "", &shape, &[]);
        let named = match &shape {
            // One that may be `null` says when.
            Shape::Either(shapes) => &shapes[0],
            shape => shape,
        };
        let doc = match named {
            Shape::Named(name) => beyond_first(&self.schemas.doc(name)),
            _ => String::new(),
        };
        let is_empty = matches!(&shape, Shape::Named(name) if name == "Empty");
        match (is_empty, rows.is_empty()) {
            (true, _) => line(page, format_args!("Reply: `{{}}`.")),
            (false, true) => {
                let kind = self.type_name(&shape);
                let space = if doc.is_empty() { "" } else { " " };
                line(page, format_args!("Reply: {kind}.{space}{doc}"));
            }
            (false, false) => {
                let space = if doc.is_empty() { "" } else { " " };
                line(page, format_args!("Reply:{space}{doc}\n"));
                page.push_str("| field | type | meaning |\n|---|---|---|\n");
                for (path, field) in rows {
                    let kind = self.type_name(&field.shape);
                    let maybe = if field.is_required { "" } else { ", or absent" };
                    row(
                        page,
                        &[&format!("`{path}`"), &format!("{kind}{maybe}"), &field.doc],
                    );
                }
            }
        }
    }

    /// The fields of a type and of those within it, by their paths.
    fn rows(&self, rows: &mut Vec<(String, Field)>, path: &str, shape: &Shape, outer: &[&str]) {
        match shape {
            Shape::Named(name) if !outer.contains(&name.as_str()) => {
                let Some(fields) = self.schemas.fields(name) else {
                    let shape = self.schemas.resolve(shape.clone());
                    return self.rows(rows, path, &shape, outer);
                };
                let outer = [outer, &[name.as_str()]].concat();
                for field in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    let inner = format!("{path}{dot}{}", field.name);
                    rows.push((inner.clone(), field.clone()));
                    self.rows(rows, &inner, &field.shape, &outer);
                }
            }
            Shape::List(element) => self.rows(rows, &format!("{path}[]"), element, outer),
            Shape::Map(value) => {
                let dot = if path.is_empty() { "" } else { "." };
                self.rows(rows, &format!("{path}{dot}*"), value, outer);
            }
            Shape::Either(shapes) => {
                for shape in shapes {
                    self.rows(rows, path, shape, outer);
                }
            }
            _ => {}
        }
    }

    fn type_name(&self, shape: &Shape) -> String {
        let list = |shapes: &[Shape], between: &str| {
            let names = shapes.iter().map(|shape| self.type_name(shape));
            names.collect::<Vec<String>>().join(between)
        };
        match self.schemas.resolve(shape.clone()) {
            Shape::List(element) => match self.type_name(&element).as_str() {
                "any" => "array".to_owned(),
                element => format!("array of {element}"),
            },
            Shape::Tuple(places) => format!("array of {}", list(&places, ", ")),
            Shape::Map(value) => match self.type_name(&value).as_str() {
                "any" => "object".to_owned(),
                value => format!("object of {value}"),
            },
            Shape::Choice(texts) => {
                let texts = texts.iter().map(|text| format!("`\"{text}\"`"));
                texts.collect::<Vec<String>>().join(" or ")
            }
            Shape::Either(shapes) => list(&shapes, " or "),
            other => other.kind().to_owned(),
        }
    }
}

/// What a doc comment says after "Reply of `ping`.".
fn beyond_first(doc: &str) -> String {
    match doc.split_once(". ") {
        Some((first, more)) if first.starts_with("Reply of ") => more.to_owned(),
        None if doc.starts_with("Reply of ") => String::new(),
        _ => doc.to_owned(),
    }
}

fn row(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    line(page, format_args!("| {} |", cells.join(" | ")));
}

fn write_stream(page: &mut String) {
    page.push_str("\n## The JSON of a stream\n\n| field | type | default | meaning |\n");
    page.push_str("|---|---|---|---|\n");
    for (name, kind, default, meaning) in stream_fields::FIELDS {
        line(
            page,
            format_args!("| `{name}` | {kind} | {default} | {meaning} |"),
        );
    }
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a String cannot fail");
}

/// A type of events, for the reference page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EventType {
    /// Its number.
    id: u32,
    /// When there is one.
    when: String,
    /// The fields of its data.
    fields: Vec<String>,
}

/// The types of events, in the order of their numbers: what the comments of [`Event`] say.
fn event_types() -> Vec<EventType> {
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let schema = generator.root_schema_for::<Event>().to_value();
    let variants = schema["anyOf"].as_array().into_iter().flatten();
    let of_variant = |variant: &Value| {
        let doc = doc(variant);
        let (id, when) = doc.split_once(": ").expect("it begins with the number");
        let fields = variant["properties"].as_object().into_iter().flatten();
        let required = variant["required"].as_array().into_iter().flatten();
        let mut names: Vec<String> = required
            .filter_map(|n| n.as_str().map(str::to_owned))
            .collect();
        let others = fields.map(|(name, _)| name.clone());
        let others: Vec<String> = others.filter(|name| !names.contains(name)).collect();
        names.extend(others);
        EventType {
            id: id.parse().expect("it is a number"),
            when: when.trim_end_matches('.').to_owned(),
            fields: names,
        }
    };
    variants.map(of_variant).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::events::StatefulPhase;

    #[test]
    fn what_the_page_says_of_a_type_is_what_its_events_are() {
        let (port, profile, epoch) = (1, "p".to_owned(), 2);
        let who = "ann".to_owned();
        let events = [
            Event::PortStarted { port },
            Event::PortStopped { port },
            Event::PortPaused { port },
            Event::PortResumed { port },
            Event::PortFinished { port },
            Event::PortAcquired {
                port,
                who: who.clone(),
                session: 3,
                force: false,
            },
            Event::PortReleased {
                port,
                who,
                session: 3,
            },
            Event::PortError { port, thread: 0 },
            Event::ProfileError {
                port,
                profile: profile.clone(),
                thread: 0,
            },
            Event::StatefulState {
                state: StatefulPhase::Idle,
                epoch,
            },
            Event::StatefulProfileState {
                profile: profile.clone(),
                state: StatefulPhase::Loaded,
                epoch,
                error: Some("no".into()),
            },
            Event::StatefulProfileCleared { profile, epoch },
            Event::ServerStopped { cause: "x".into() },
        ];
        let types = event_types();
        for event in events {
            let found = types.iter().find(|of_type| of_type.id == event.id());
            let Value::Object(data) = json!(event) else {
                panic!("{event:?} is an object");
            };
            let mut fields = found.expect("its type is there").fields.clone();
            fields.sort();
            assert_eq!(
                fields,
                data.keys().cloned().collect::<Vec<_>>(),
                "{event:?}"
            );
        }
        assert_eq!(types.len(), 19);
    }
}
