//! The project's own rules, read from its source text.
//!
//! Each rule has a file: a function from sources to violations, so that it is tested on small
//! examples, and one test that runs it over the project. What the compiler, clippy, rustfmt and ruff
//! check already needs no rule here.

mod architecture;
mod code_paths;
mod cycles;
mod headers;
mod imports;
mod manifest;
mod module_order;
mod paths;
mod purity;
mod sizes;
mod source;
mod type_names;
mod unsafety;
mod vocabulary;

/// Fails with all the violations of a rule, one a line.
#[track_caller]
fn assert_none(violations: &[String]) {
    assert!(
        violations.is_empty(),
        "{} against the project's rules:\n{}\n",
        violations.len(),
        violations.join("\n")
    );
}

/// Fails unless there is exactly one violation and it says all of `parts`.
#[track_caller]
fn assert_one(violations: &[String], parts: &[&str]) {
    let [violation] = violations else {
        panic!("one violation expected, got {violations:#?}");
    };
    for part in parts {
        assert!(violation.contains(part), "'{part}' is not in: {violation}");
    }
}
