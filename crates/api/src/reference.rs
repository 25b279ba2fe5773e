//! The reference page of the RPC, written from the command table.

use crate::command::{Access, Command, Param, ParamDefault};
use crate::commands::streams::stream;
use crate::table::NOUNS;
use crate::{events, limits};
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
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    write_limits(&mut page);
    write_events(&mut page);
    for (noun, commands) in NOUNS {
        page.push_str(&format!("\n## {noun}\n"));
        for command in *commands {
            write_command(&mut page, command);
        }
    }
    write_stream(&mut page);
    page.push_str(WRITTEN);
    page
}

fn write_limits(page: &mut String) {
    page.push_str("\n## Limits\n\n| what | most | beyond it |\n|---|---|---|\n");
    for (what, most, beyond) in limits::table() {
        line(page, format_args!("| {what} | {most} | {beyond} |"));
    }
}

fn write_events(page: &mut String) {
    page.push_str("\n## Event types\n\n| type | when | data |\n|---|---|---|\n");
    for (id, when, data) in events::TYPES {
        line(page, format_args!("| {id} | {when} | {data} |"));
    }
    page.push_str(
        "\nAn event is `{\"name\": \"trex-event\", \"type\": n, \"data\": {...}, \"seq\": n}`. \
         `seq` counts from 0 in each session, without gaps.\n",
    );
}

fn write_command(page: &mut String, command: &Command) {
    let access = match command.access {
        Access::Open => "",
        Access::Api => " (api)",
        Access::Owner => " (owner)",
        Access::Context => " (owner of the server)",
    };
    line(page, format_args!("\n### `{}`{access}\n", command.name));
    line(page, format_args!("{}\n", command.doc));
    if !command.params.is_empty() {
        page.push_str("| parameter | type | default | meaning |\n|---|---|---|---|\n");
        command.params.iter().for_each(|p| write_param(page, p));
        page.push('\n');
    }
    line(page, format_args!("Reply: {}", command.reply));
    if !command.errors.is_empty() {
        line(
            page,
            format_args!("\nRefused when: {}.", command.errors.join("; ")),
        );
    }
    line(
        page,
        format_args!(
            "\n```json\n{}\n{}\n```",
            command.example.params, command.example.result
        ),
    );
}

fn write_param(page: &mut String, param: &Param) {
    let default = match param.default {
        ParamDefault::Required => "",
        ParamDefault::Optional(default) => default,
        ParamDefault::Sometimes(when) => &format!("only: {when}"),
    };
    let (name, kind, doc) = (param.name, param.kind.name(), param.doc);
    line(
        page,
        format_args!("| `{name}` | {kind} | {default} | {doc} |"),
    );
}

fn write_stream(page: &mut String) {
    page.push_str("\n## The JSON of a stream\n\n| field | type | default | meaning |\n");
    page.push_str("|---|---|---|---|\n");
    for (name, kind, default, meaning) in stream::FIELDS {
        line(
            page,
            format_args!("| `{name}` | {kind} | {default} | {meaning} |"),
        );
    }
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a String cannot fail");
}
