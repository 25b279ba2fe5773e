//! The command table and the code that reads parameters say the same, and so does the page.

use std::collections::HashSet;
use std::path::Path;

use allosaur_api::command::{Command, Kind, Param, ParamDefault};
use allosaur_api::{Fields, commands, reference};
use allosaur_api::{Method, Mode, StatelessMethod};
use serde_json::{Map, Value, json};

fn example(command: &Command) -> Map<String, Value> {
    match serde_json::from_str(command.example.params) {
        Ok(Value::Object(map)) => map,
        other => panic!("{}: the example is no object: {other:?}", command.name),
    }
}

fn check(command: &Command, params: &Map<String, Value>) -> Result<(), String> {
    (command.check)(&Fields::new(params)).map_err(|error| error.to_string())
}

/// A value of a type that the parameter is not.
fn wrong(param: &Param) -> Value {
    match param.kind {
        Kind::String => json!(5),
        _ => json!("no"),
    }
}

#[test]
fn examples_are_accepted() {
    for command in commands() {
        assert_eq!(
            check(command, &example(command)),
            Ok(()),
            "{}",
            command.name
        );
        let result: Result<Value, _> = serde_json::from_str(command.example.result);
        assert!(result.is_ok(), "{}: {result:?}", command.name);
    }
}

#[test]
fn examples_use_no_parameter_that_the_table_lacks() {
    for command in commands() {
        for name in example(command).keys() {
            let known = command.params.iter().any(|param| param.name == name);
            assert!(known, "{}: {name}", command.name);
        }
    }
}

#[test]
fn a_parameter_is_required_exactly_when_the_table_says_so() {
    for command in commands() {
        for param in command.params {
            let mut params = example(command);
            params.remove(param.name);
            if matches!(param.default, ParamDefault::Sometimes(_)) {
                continue;
            }
            let required = param.default == ParamDefault::Required;
            match check(command, &params) {
                Ok(()) => assert!(!required, "{} does without {}", command.name, param.name),
                // Of get_tpg_status's two parameters one must be there, whichever.
                Err(error) if command.method == Method::Stateless(StatelessMethod::TpgStatus) => {
                    assert!(error.contains(param.name));
                }
                Err(error) => {
                    assert!(required, "{}: {error}", command.name);
                    let expected = format!("field '{}' is missing", param.name);
                    assert_eq!(error, expected, "{}", command.name);
                }
            }
        }
    }
}

#[test]
fn a_parameter_of_another_type_is_named() {
    for command in commands() {
        for param in command.params {
            let mut params = example(command);
            let in_example = params.contains_key(param.name);
            if matches!(param.default, ParamDefault::Sometimes(_)) && !in_example {
                continue;
            }
            params.insert(param.name.to_owned(), wrong(param));
            let error = check(command, &params).expect_err(param.name);
            let start = format!("'{}' is '", param.name);
            assert!(error.starts_with(&start), "{}: {error}", command.name);
            let end = format!("expecting '{}'", param.kind.name());
            assert!(error.ends_with(&end), "{}: {error}", command.name);
        }
    }
}

#[test]
fn every_method_and_in_each_mode_every_name_is_in_the_table_once() {
    let methods: HashSet<Method> = commands().map(|command| command.method).collect();
    assert_eq!(commands().count(), methods.len());
    for mode in [Mode::Stateless, Mode::Stateful] {
        let there = || commands().filter(|command| command.method.is_in(mode));
        let names: HashSet<&str> = there().map(|command| command.name).collect();
        assert_eq!(names.len(), there().count(), "{mode:?}");
    }
}

#[test]
fn four_names_are_another_command_in_each_mode() {
    for name in ["acquire", "release", "service", "get_profile_list"] {
        let of = |mode| allosaur_api::command(name, mode).map(|command| command.method);
        let (stateless, stateful) = (of(Mode::Stateless), of(Mode::Stateful));
        assert!(stateless.is_some() && stateful.is_some(), "{name}");
        assert_ne!(stateless, stateful, "{name}");
    }
    assert!(allosaur_api::command("start", Mode::Stateless).is_none());
    assert!(allosaur_api::command("start_traffic", Mode::Stateful).is_some());
}

#[test]
fn the_reference_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rpc.md");
    let page = reference::markdown();
    if std::env::var_os("ALLOSAUR_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/rpc.md is not what the command table says: run \
         `ALLOSAUR_WRITE_DOCS=1 cargo test -p allosaur-api --test table`"
    );
}
