//! Any change anywhere: an error that says something or a profile, never a panic.

use allosaur_engine::template::Layout;
use allosaur_server::control::stateful::read_profile::compile;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::small;

/// Values that are likely to be wrong somewhere.
fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just(1e300), Just(-0.0), Just(0.5), Just(1.9e19)].prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(json!("255.255.255.255")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([0, 255, 3])),
    ]
}

/// The number of values in a tree.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// The value at a place in the tree.
fn at<'a>(value: &'a mut Value, mut place: usize) -> &'a mut Value {
    if place == 0 {
        return value;
    }
    place -= 1;
    let children: Box<dyn Iterator<Item = &'a mut Value>> = match value {
        Value::Array(values) => Box::new(values.iter_mut()),
        Value::Object(fields) => Box::new(fields.values_mut()),
        _ => unreachable!("only lists and objects have more in them"),
    };
    for child in children {
        let inside = count(child);
        if place < inside {
            return at(child, place);
        }
        place -= inside;
    }
    unreachable!("the place is within the tree")
}

#[derive(Clone, Debug)]
enum Change {
    Replace(Index, Value),
    Remove(Index, Index),
    Repeat(Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<Index>(), odd()).prop_map(|(place, value)| Change::Replace(place, value)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(place, i)| Change::Remove(place, i)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(place, i)| Change::Repeat(place, i)),
    ]
}

fn apply(profile: &mut Value, change: Change) {
    let total = count(profile);
    match change {
        Change::Replace(place, value) => *at(profile, place.index(total)) = value,
        Change::Remove(place, i) => match at(profile, place.index(total)) {
            Value::Array(values) if !values.is_empty() => {
                drop(values.remove(i.index(values.len())))
            }
            Value::Object(fields) if !fields.is_empty() => {
                let name = fields.keys().nth(i.index(fields.len())).cloned();
                fields.remove(&name.expect("the place is within the object"));
            }
            _ => {}
        },
        Change::Repeat(place, i) => {
            if let Value::Array(values) = at(profile, place.index(total)) {
                let again = (!values.is_empty()).then(|| values[i.index(values.len())].clone());
                values.extend(again);
            }
        }
    }
}

proptest! {
    #[test]
    fn changed_values_are_errors_or_right(
        changes in prop::collection::vec(change(), 1..4), cores in 1_u32..5, pairs in 1_u32..3,
    ) {
        let mut profile = small::profile();
        for change in changes {
            apply(&mut profile, change);
        }
        if let Err(error) = compile(&profile.to_string(), Layout { cores, pairs }) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn changed_bytes_are_errors_or_right(
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = small::profile().to_string().into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        // Requests are JSON, so a profile is always UTF-8.
        if let Err(error) = compile(&String::from_utf8_lossy(&bytes), Layout::SMALLEST) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
