//! The command table and the code that reads parameters say the same, and so does the page.

use std::collections::HashSet;
use std::path::Path;

use allosaur_api::command::Command;
use allosaur_api::schema::{Field, Schemas};
use allosaur_api::{Fields, commands, python, reference, table};
use allosaur_api::{Method, Mode, StatelessMethod};
use serde_json::{Map, Value, json};

fn example(command: &Command) -> Map<String, Value> {
    match serde_json::from_str(command.example.params) {
        Ok(Value::Object(map)) => map,
        other => panic!("{}: the example is no object: {other:?}", command.name),
    }
}

fn check(command: &Command, params: &Map<String, Value>) -> Result<(), String> {
    let params = Box::leak(Box::new(params.clone()));
    (command.types.check)(&Fields::new(params)).map_err(|error| error.to_string())
}

fn schemas() -> Schemas {
    Schemas::collect(table::nouns())
}

/// Whether a parameter belongs to some forms of its command only.
fn is_of_some_forms(param: &Field) -> bool {
    let default = param.default.as_deref();
    default.is_some_and(|default| default.starts_with("only: "))
}

/// A value of a type that the parameter is not.
fn wrong(param: &Field) -> Value {
    match param.shape.kind() {
        "string" => json!(5),
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
    for (command, params) in table::commands_with_params() {
        for name in example(command).keys() {
            let known = params.iter().any(|param| &param.name == name);
            assert!(known, "{}: {name}", command.name);
        }
    }
}

#[test]
fn every_field_says_what_it_means() {
    assert_eq!(schemas().undocumented_fields(), [""; 0]);
}

#[test]
fn a_parameter_is_required_exactly_when_the_table_says_so() {
    for (command, fields) in table::commands_with_params() {
        for param in fields {
            let mut params = example(command);
            params.remove(&param.name);
            if is_of_some_forms(&param) {
                continue;
            }
            match check(command, &params) {
                Ok(()) => assert!(
                    !param.is_required,
                    "{} does without {}",
                    command.name, param.name
                ),
                // Of get_tpg_status's two parameters one must be there, whichever.
                Err(error) if command.method == Method::Stateless(StatelessMethod::TpgStatus) => {
                    assert!(error.contains(&param.name));
                }
                Err(error) => {
                    assert!(param.is_required, "{}: {error}", command.name);
                    let expected = format!("field '{}' is missing", param.name);
                    assert_eq!(error, expected, "{}", command.name);
                }
            }
        }
    }
}

#[test]
fn a_parameter_of_another_type_is_named() {
    for (command, fields) in table::commands_with_params() {
        for param in fields {
            let mut params = example(command);
            let in_example = params.contains_key(&param.name);
            if is_of_some_forms(&param) && !in_example {
                continue;
            }
            params.insert(param.name.clone(), wrong(&param));
            let error = check(command, &params).expect_err(&param.name);
            let start = format!("'{}' is '", param.name);
            assert!(error.starts_with(&start), "{}: {error}", command.name);
            let end = format!("expecting '{}'", param.shape.kind());
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
fn what_is_written_from_the_table_is_fresh() {
    let schemas = schemas();
    let document =
        serde_json::to_string_pretty(&schemas.document("The RPC of Allosaur")).expect("it is JSON");
    check_written("docs/reference/rpc.md", &reference::markdown(&schemas));
    check_written("docs/reference/rpc.schema.json", &(document + "\n"));
    for (module, text) in python::modules(&schemas, "crates/api") {
        check_written(&format!("python/allosaur/rpc/types/{module}.py"), &text);
    }
}

/// Whether a file of the repository has this text; with `ALLOSAUR_WRITE_DOCS` set it gets it.
fn check_written(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    if std::env::var_os("ALLOSAUR_WRITE_DOCS").is_some() {
        std::fs::write(&file, text).expect("the file can be written");
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == text,
        "{path} is not what the command table says: run \
         `ALLOSAUR_WRITE_DOCS=1 cargo test -p allosaur-api --test table`"
    );
}
