//! Any requests in any order, with any parameters: answered, each, and the server goes on.

use std::sync::LazyLock;

use allosaur_api::schema::Field;
use allosaur_api::table::commands_with_params;
use allosaur_api::{Command, Mode};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Owned, profile};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-z_*.0-9]{0,9}".prop_map(Value::from),
        Just(json!("_")),
        Just(json!("{}")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,12}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// What happens between requests.
#[derive(Clone, Debug)]
enum Step {
    /// A command of the table, by its place, with some parameters replaced.
    Call(prop::sample::Index, Vec<(prop::sample::Index, Value)>),
    /// A profile is loaded and started.
    Run,
    /// All that runs ends.
    End,
    /// Control's timers.
    Time,
    /// A data thread breaks down.
    Lose(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    let change = (any::<prop::sample::Index>(), any_value());
    let call = (
        any::<prop::sample::Index>(),
        prop::collection::vec(change, 0..3),
    );
    prop_oneof![
        8 => call.prop_map(|(command, changes)| Step::Call(command, changes)),
        2 => Just(Step::Run),
        1 => Just(Step::End),
        1 => Just(Step::Time),
        1 => (0_usize..2).prop_map(Step::Lose),
    ]
}

/// The commands of stateful mode, with their parameters.
fn table() -> &'static [(&'static Command, Vec<Field>)] {
    static TABLE: LazyLock<Vec<(&Command, Vec<Field>)>> = LazyLock::new(|| {
        let all = commands_with_params().into_iter();
        all.filter(|(command, _)| command.method.is_in(Mode::Stateful))
            .collect()
    });
    &TABLE
}

fn take(server: &mut Owned, step: &Step) {
    match step {
        Step::Call(place, changes) => {
            let (command, params_of_it) = place.get(table());
            let mut params: Value = serde_json::from_str(command.example.params).expect("JSON");
            for (place, value) in changes {
                if !params_of_it.is_empty() {
                    params[place.get(params_of_it).name.as_str()] = value.clone();
                }
            }
            let reply = server.call(command.name, params);
            let has = |name| reply.get(name).is_some();
            assert!(has("result") != has("error"), "{}: {reply}", command.name);
        }
        Step::Run => {
            server.acquire();
            let load = json!({"fragment": profile(&["g"]), "frag_first": true, "frag_last": true});
            server.call("profile_fragment", load);
            let start = super::world::start_params("_", json!({}));
            server.call("start", start);
        }
        Step::End => {
            for run in server.runs() {
                server.end_all(run);
            }
        }
        Step::Time => _ = server.next_timeout(),
        Step::Lose(core) => {
            let now_ns = server.world.now_ns;
            server.world.control.handle_lost_core(*core, now_ns);
            server.world.drain();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_requests_are_answered_and_events_have_no_gaps(
        steps in prop::collection::vec(any_step(), 1..40)
    ) {
        let mut server = Owned::new(2);
        let mut next = None;
        for step in &steps {
            take(&mut server, step);
            let params = json!({"api_h": server.api_h, "session_id": super::world::SESSION});
            let reply = server.world.ok("get_async_events", params);
            for event in reply["data"].as_array().expect("a list") {
                let seq = event["seq"].as_u64().expect("a number");
                prop_assert!(next.is_none_or(|next| next == seq), "{event}");
                next = Some(seq + 1);
            }
        }
        let pong = server.world.ok("ping", json!({}));
        prop_assert!(pong["ts"].is_f64());
        // Whatever was done, a profile can be cleared once nothing runs.
        server.acquire();
        server.settle();
        for run in server.runs() {
            server.end_all(run);
        }
        server.ok("profile_clear", json!({"profile_id": "_"}));
    }
}
