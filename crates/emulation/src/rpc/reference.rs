//! The reference page of the commands of emulated clients, written from their rows.

use allosaur_api::reference::write_commands;
use allosaur_api::schema::{Entry, Noun, Schemas};
use allosaur_api::{Command, Mode};

use super::commands::CORE;
use crate::plugins::PLUGINS;

const INTRODUCTION: &str = "# Commands of emulated clients

For programmers of clients: every command, its parameters, its reply, and when it is refused. What emulated clients are,
[the guide](../guide/console.md) says.

## Two ways to call them

The port 4510 (unless told otherwise) speaks as TRex's EMU server does. Its `api_sync_v2` gives the
`api_h` that commands marked **api** need.

Port 4501 answers the same commands, with the form of messages and errors, and the `api_h`, of
[the RPC](rpc.md). `api_sync_v2`, `get_version`, `ping` and `shutdown` are commands of both: at port
4501 they are those of the RPC.

## Values

MAC addresses are lists of six bytes, IPv4 addresses of four, IPv6 addresses of 16. A list that is too
short is filled up with zeros, and what is too much is not looked at. A field that is `null` is a field
that is missing; in a list, `null` is zero.

A namespace is named by `tun`: the number of a port, and up to two VLAN tags. A client is named by `tun`
and `mac`. Commands about a namespace are refused when it is not there or has not the plugin, commands
about a client also when that is not there or has not the plugin.

## Errors

At port 4510 an error has a `code` and a `message`. At port 4501 the message is in `specific_err`, and
the code is -32000 where here is -32600.

| code | when |
|---|---|
| -32700 | the message is not JSON |
| -32600 | a parameter has the wrong type, or the command is refused |
| -32601 | there is no such command |
| -32602 | `api_h` is wrong, or a value is none that there may be |
| -32603 | a plugin of a client could not be made |
";

/// For who opens the file, not for who reads the page.
const WRITTEN: &str = "
<!-- Written from the rows of commands in `crates/emulation`: change them there, then run
`ALLOSAUR_WRITE_DOCS=1 cargo test -p allosaur-emulation --test commands`. -->
";

/// The whole page, in Markdown.
pub fn markdown(schemas: &Schemas) -> String {
    let mut page = INTRODUCTION.to_owned();
    write_commands(&mut page, schemas);
    page.push_str(WRITTEN);
    page
}

/// All commands, as the schema file, the reference page and the types of other languages have them: a section
/// for the emulation, and one for each plugin.
pub fn nouns() -> Vec<Noun> {
    let entry = |command: Command<()>| Entry {
        mode: Mode::Any,
        command,
    };
    let core = CORE.iter().map(|command| entry(command.with_method(())));
    let core = Noun {
        title: "Namespaces and clients",
        module: "clients",
        entries: core.collect(),
    };
    let of_plugins = PLUGINS.iter().map(|spec| Noun {
        title: spec.name,
        module: spec.name,
        entries: spec
            .commands
            .iter()
            .map(|command| entry(command.with_method(())))
            .collect(),
    });
    std::iter::once(core).chain(of_plugins).collect()
}
