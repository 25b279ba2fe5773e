//! The rows of commands say what is done, and so do the page, the schema and the types written from them.

use std::collections::HashSet;
use std::path::Path;

use allosaur_api::python;
use allosaur_api::schema::{Schemas, Shape};
use allosaur_emulation::rpc::commands::{command, names};
use allosaur_emulation::rpc::reference::{self, nouns};
use allosaur_emulation::{Emulation, Settings};
use serde_json::{Value, json};

fn schemas() -> Schemas {
    Schemas::collect(nouns())
}

#[test]
fn every_name_is_there_once() {
    let all: Vec<&str> = names().collect();
    let different: HashSet<&str> = all.iter().copied().collect();
    assert_eq!(all.len(), different.len());
    assert!(all.iter().all(|name| command(name).is_some()));
    assert!(command("no_such").is_none());
}

/// Each example is read: it fails for what is not there, not for its words.
#[test]
fn examples_are_read() {
    let mut tested = 0;
    for noun in nouns() {
        for entry in noun.entries {
            let example = entry.command.example.to_json();
            let mut emulation = Emulation::new(Settings::default(), 0);
            let plugins: Value = names_of_plugins();
            let tunnel = json!({"vport": 0, "plugs": plugins});
            let added = emulation.handle_request(0, "ctx_add", &json!({"tunnels": [tunnel]}));
            assert_eq!(added, Ok(json!(true)));
            let name = entry.command.name;
            if let Err(error) = emulation.handle_request(0, name, &example["params"]) {
                let error = error.to_string();
                assert!(!error.contains("json:"), "{name}: {error}");
                assert!(!error.contains("Field validation"), "{name}: {error}");
            }
            tested += 1;
        }
    }
    assert_eq!(tested, names().count());
}

/// Those that a namespace can have without an init JSON.
fn names_of_plugins() -> Value {
    json!({"arp": {}, "icmp": {}, "igmp": {}, "ipv6": {}, "dns": {}, "mdns": {}, "dot1x": {}})
}

#[test]
fn every_field_says_what_it_means() {
    assert_eq!(schemas().undocumented_fields(), [""; 0]);
}

#[test]
fn examples_use_no_parameter_that_the_rows_lack() {
    let schemas = schemas();
    for (noun, shapes) in &schemas.nouns {
        for (entry, shapes) in noun.entries.iter().zip(shapes) {
            let Shape::Named(name) = Shape::of(&shapes.request) else {
                panic!("parameters are an object that has a name");
            };
            let fields = schemas.fields(&name).expect("an object");
            let example = entry.command.example.to_json();
            let given = example["params"].as_object().expect("an object");
            for name in given.keys() {
                let is_known = fields.iter().any(|field| field.name == *name);
                assert!(is_known, "{}: {name}", entry.command.name);
            }
            for field in fields.iter().filter(|field| field.is_required) {
                let is_given = given.contains_key(&field.name);
                assert!(is_given, "{}: {}", entry.command.name, field.name);
            }
        }
    }
}

#[test]
fn what_is_written_from_the_rows_is_fresh() {
    let schemas = schemas();
    let document = schemas.document("The commands of emulated clients");
    let document = serde_json::to_string_pretty(&document).expect("it is JSON");
    check_written(
        "docs/reference/emulation.md",
        &reference::markdown(&schemas),
    );
    check_written("docs/reference/emulation.schema.json", &(document + "\n"));
    for (module, text) in python::modules(&schemas, "crates/emulation") {
        let path = format!("python/allosaur/rpc/types/emulation/{module}.py");
        check_written(&path, &text);
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
        "{path} is not what the rows of commands say: run \
         `ALLOSAUR_WRITE_DOCS=1 cargo test -p allosaur-emulation --test commands`"
    );
}
