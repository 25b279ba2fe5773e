//! A command line that is refused, in one line, as the `allosaur` command words it.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Says in one line what is wrong with a command line, and what to do.
pub(super) fn one_line(error: &clap::Error) -> String {
    let problem = problem(error).unwrap_or_else(|| first_paragraph(error));
    let near = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ];
    let near = near.into_iter().find_map(|kind| words(error, kind));
    let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    let help = match command(error) {
        Some(command) => format!(" (see {command} --help)"),
        None => String::new(),
    };
    format!("{problem}{near}{help}")
}

fn problem(error: &clap::Error) -> Option<String> {
    let given = words(error, ContextKind::InvalidArg);
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.as_str(),
        _ => "",
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let given = given?;
            Some(match given.starts_with('-') {
                true => format!("there is no option {given}"),
                false => format!("'{given}' is one word too many"),
            })
        }
        ErrorKind::InvalidSubcommand => {
            let name = words(error, ContextKind::InvalidSubcommand)?;
            Some(format!("there is no command '{name}'"))
        }
        ErrorKind::MissingRequiredArgument => {
            let given = given?;
            let verb = if given.contains(" and ") { "are" } else { "is" };
            Some(format!("{given} {verb} missing"))
        }
        ErrorKind::MissingSubcommand => Some("a command is missing".to_owned()),
        ErrorKind::ArgumentConflict => {
            let other = words(error, ContextKind::PriorArg)?;
            Some(format!("{}: not allowed with {other}", given?))
        }
        ErrorKind::ValueValidation => Some(format!("{}: {}", given?, error.source()?)),
        ErrorKind::InvalidValue if value.is_empty() => {
            Some(format!("{}: a value is missing", given?))
        }
        ErrorKind::InvalidValue => {
            let valid = words(error, ContextKind::ValidValue)?;
            Some(format!("{}: '{value}' is none of {valid}", given?))
        }
        _ => None,
    }
}

/// A piece of what `clap` knows of the error, or several; options and arguments by their plain names.
fn words(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(plain(text)),
        ContextValue::Strings(texts) if !texts.is_empty() => {
            let texts: Vec<String> = texts.iter().map(|text| plain(text)).collect();
            Some(texts.join(" and "))
        }
        _ => None,
    }
}

/// An option without the name of its value, `--ports` of `--ports <PORTS>`; `FILE` of `<FILE>`.
fn plain(name: &str) -> String {
    let option = match name.starts_with('-') {
        true => name.split([' ', '=']).next().unwrap_or(name),
        false => name,
    };
    option.replace(['<', '>'], "")
}

/// The command whose help tells more, from the line that shows its usage.
fn command(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return None;
    };
    let usage = usage.to_string();
    let mut all = usage.split_whitespace();
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let names: Vec<&str> = all.by_ref().skip(1).take_while(is_name).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// What `clap` says itself, without its advice.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or(&text);
    let line: Vec<&str> = paragraph.split_whitespace().collect();
    line.join(" ").replacen("error: ", "", 1)
}
