//! The command table: all commands, by name.
//!
//! A method that is not here is answered "Method … not registered". A method that is here works.

use crate::command::Command;
use crate::commands::NOUNS;
use crate::method::Mode;
#[cfg(feature = "schema")]
use crate::schema::{Entry, Field, Noun, Schemas, Shape};

#[cfg(feature = "schema")]
/// All commands by noun, as the schema file, the reference page and the types of other languages have them.
pub fn nouns() -> Vec<Noun> {
    let noun = |(title, module, commands): &(&'static str, &'static str, &[Command])| Noun {
        title,
        module,
        entries: commands.iter().map(Entry::from).collect(),
    };
    NOUNS.iter().map(noun).collect()
}

/// All commands, of all modes.
pub fn commands() -> impl Iterator<Item = &'static Command> {
    NOUNS.iter().flat_map(|(_, _, commands)| commands.iter())
}

/// The command of that name, in that mode of the server.
pub fn command(name: &str, mode: Mode) -> Option<&'static Command> {
    commands().find(|command| command.name == name && command.method.is_in(mode))
}

#[cfg(feature = "schema")]
/// Each command with its parameters, for tests.
pub fn commands_with_params() -> Vec<(&'static Command, Vec<Field>)> {
    let schemas = Schemas::collect(nouns());
    let shapes = schemas.nouns.iter().flat_map(|(_, shapes)| shapes);
    let params = shapes.map(|shapes| match Shape::of(&shapes.request) {
        Shape::Named(name) => schemas.fields(&name).expect("parameters are an object"),
        other => panic!("parameters are an object that has a name, not {other:?}"),
    });
    let params = commands().zip(params).map(|(command, params)| {
        let params = params.into_iter().map(|field| Field {
            shape: schemas.resolve(field.shape.clone()),
            ..field
        });
        (command, params.collect())
    });
    params.collect()
}
