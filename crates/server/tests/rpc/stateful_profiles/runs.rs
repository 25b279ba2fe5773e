//! Each profile of the data runs between two ports, from its JSON to the last byte.

use allosaur_engine::time::{MICROSECOND, SECOND};
use allosaur_server::sim::stateful::{Outcome, Plan, SimSettings, compile, simulate};
use allosaur_testkit::data;

#[test]
fn all_profiles_of_the_data_run_to_the_last_byte() {
    let mut wrong = Vec::new();
    for path in data::files("profiles-stateful", ".json") {
        let name = path
            .file_stem()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        let text = data::text(&path);
        let mut plan = Plan {
            duration: Some(2 * SECOND),
            flows: None,
            ..Plan::basic(SimSettings::perfect(42, 200 * MICROSECOND))
        };
        let compiled = compile(&text, &plan).expect("it is taken");
        // About ten connections a second.
        plan.factor = 10.0 / compiled.profile.rate_cps();
        wrong.extend(check(&name, &simulate(&compiled, &plan, ())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(name: &str, outcome: &Outcome) -> Vec<String> {
    let problems = outcome.verdict.problems.iter();
    problems.map(|text| format!("{name}: {text}")).collect()
}
