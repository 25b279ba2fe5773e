//! What the init JSON of a namespace may be, with the reference's texts about what may not.

use std::fmt::Write;

use serde_json::Value;

/// Commands, with the numbers that they must have.
const COMMANDS: &[(&str, &[&str])] = &[
    ("tx", &["buf_index"]),
    ("rx", &["min_bytes"]),
    ("tx_msg", &["buf_index"]),
    ("rx_msg", &["min_pkts"]),
    ("keepalive", &["msec"]),
    ("delay_rnd", &["min_usec", "max_usec"]),
    ("set_var", &["id", "val"]),
    ("jmp_nz", &["id", "offset"]),
    ("delay", &["usec"]),
    ("set_tick_var", &[]),
    ("jmp_dp", &[]),
    ("tx_mode", &[]),
    ("close_msg", &[]),
    ("connect", &[]),
    ("reset", &[]),
    ("nc", &[]),
];
/// The lists that there must be, each with something in it.
const LISTS: [&str; 2] = ["templates", "program_list"];

/// What is wrong, a line each; nothing when all is right.
pub(super) fn problems(init: &Value) -> String {
    let mut text = String::new();
    if init.get("buf_list").is_none() {
        return "- (root): buf_list is required\n".to_owned();
    }
    for name in LISTS {
        match &init[name] {
            Value::Null => line(&mut text, "(root)", &format!("{name} is required")),
            Value::Array(items) if items.is_empty() => {
                line(&mut text, name, "Array must have at least 1 items");
            }
            _ => {}
        }
    }
    array(
        &mut text,
        &init["buf_list"],
        "buf_list",
        |text, at, item| {
            expect(text, at, item, "string", Value::is_string);
        },
    );
    array(
        &mut text,
        &init["program_list"],
        "program_list",
        |text, at, program| {
            let path = format!("{at}.commands");
            array(text, &program["commands"], &path, command);
        },
    );
    array(&mut text, &init["templates"], "templates", template);
    if !init["tunable_list"].is_null() {
        array(
            &mut text,
            &init["tunable_list"],
            "tunable_list",
            |text, at, item| {
                expect(text, at, item, "object", Value::is_object);
            },
        );
    }
    text
}

fn line(text: &mut String, at: &str, problem: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "- {at}: {problem}");
}

fn expect(text: &mut String, at: &str, value: &Value, wanted: &str, is: fn(&Value) -> bool) {
    if !is(value) {
        let kind = kind(value);
        line(
            text,
            at,
            &format!("Invalid type. Expected: {wanted}, given: {kind}"),
        );
    }
}

fn array(
    text: &mut String,
    value: &Value,
    path: &str,
    mut check: impl FnMut(&mut String, &str, &Value),
) {
    match value {
        // That it is missing was said.
        Value::Null if LISTS.contains(&path) => {}
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                check(text, &format!("{path}.{place}"), item);
            }
        }
        other => expect(text, path, other, "array", Value::is_array),
    }
}

fn command(text: &mut String, at: &str, command: &Value) {
    let mut problems = String::new();
    let known = COMMANDS
        .iter()
        .find(|(name, _)| command["name"] == *name)
        // The reference takes a delay without a time for a command that it does not know.
        .filter(|(name, _)| *name != "delay" || !command["usec"].is_null());
    match known {
        None => {
            let problem = format!(
                "{at}.name must be one of the following: \"close_msg\", \"connect\", \"reset\", \"nc\""
            );
            line(&mut problems, &format!("{at}.name"), &problem);
        }
        Some((_, numbers)) => {
            for number in *numbers {
                match &command[number] {
                    Value::Null => line(&mut problems, at, &format!("{number} is required")),
                    value => {
                        let at = format!("{at}.{number}");
                        expect(&mut problems, &at, value, "integer", is_integer);
                    }
                }
            }
        }
    }
    if !problems.is_empty() {
        line(text, at, "Must validate at least one schema (anyOf)");
        text.push_str(&problems);
    }
}

fn template(text: &mut String, at: &str, template: &Value) {
    for side in ["client_template", "server_template"] {
        let (at, side) = (format!("{at}.{side}"), &template[side]);
        if side.is_null() {
            continue;
        }
        match &side["program_index"] {
            Value::Null => line(text, &at, "program_index is required"),
            index => expect(
                text,
                &format!("{at}.program_index"),
                index,
                "integer",
                is_integer,
            ),
        }
        if !side["tunable_index"].is_null() {
            let at = format!("{at}.tunable_index");
            expect(text, &at, &side["tunable_index"], "integer", is_integer);
        }
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn with_command(command: &Value) -> Value {
        json!({"buf_list": ["YQ=="], "program_list": [{"commands": [command]}],
            "templates": [{"client_template": {"program_index": 0}}]})
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        let problems = |command| problems(&with_command(&command));
        assert_eq!(problems(json!({"name": "nc"})), "");
        assert_eq!(
            problems(json!({"name": "delay_rnd", "min_usec": 5})),
            "- program_list.0.commands.0: Must validate at least one schema (anyOf)\n\
             - program_list.0.commands.0: max_usec is required\n"
        );
        let text = problems(json!({"name": "rx_msg", "min_pkts": "x"}));
        assert!(text.contains("min_pkts: Invalid type. Expected: integer, given: string"));
        assert!(problems(json!(7)).contains("must be one of"));
    }

    proptest! {
        #[test]
        fn anything_has_an_answer(text in ".{0,40}", number in any::<i64>()) {
            for value in [json!(text), json!(number), json!([text]), json!({"name": text})] {
                problems(&with_command(&value));
                problems(&json!({"buf_list": value, "templates": value, "program_list": value}));
            }
        }
    }
}
