//! One reply of those of all shards.

use serde_json::{Map, Value, json};

use crate::emulation::{names as names_of, plugin_id};

/// How the replies of shards make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// They are the same.
    Same,
    /// Lists, one behind the other.
    Lists,
    /// Tables of counters by their names.
    Counters,
    /// Descriptions of namespaces, by parts: the first has the namespaces, others clients and plugins of them.
    Infos,
}

/// Counters of the process, or of its time: they are those of one shard.
const OF_ALL: [&str; 4] = ["ticks", "elapsedTimeMs", "cpuPercent", "rss"];
/// A counter that is a quotient, and of which two.
const QUOTIENT: (&str, [&str; 2]) = ("bytesPerClient", ["tableBytes", "clients"]);

impl Merge {
    /// Adds the reply of the next shard.
    pub(super) fn add(self, merged: &mut Value, next: Value) {
        match (self, merged, next) {
            // Where a shard has nothing to say.
            (_, merged @ Value::Null, next) => *merged = next,
            (Merge::Infos, Value::Array(merged), Value::Array(next)) => {
                next.iter().for_each(|next| add_info(merged, next));
            }
            (Merge::Lists, Value::Array(merged), Value::Array(next)) => merged.extend(next),
            (Merge::Counters, Value::Object(merged), Value::Object(next)) => {
                for (name, table) in next {
                    match (merged.get_mut(&name), table) {
                        (Some(Value::Object(merged)), Value::Object(table)) => {
                            add_table(merged, table);
                        }
                        (Some(_), _) => {}
                        (None, table) => drop(merged.insert(name, table)),
                    }
                }
            }
            _ => {}
        }
    }
}

/// Adds the clients and plugins of a namespace on another shard.
fn add_info(merged: &mut [Value], next: &Value) {
    let is_same = |info: &&mut Value| {
        ["vport", "tci", "tpid"]
            .iter()
            .all(|key| info[key] == next[key])
    };
    for info in merged.iter_mut().filter(is_same) {
        let clients = [&info["active_clients"], &next["active_clients"]];
        info["active_clients"] = json!(
            clients
                .iter()
                .filter_map(|count| count.as_u64())
                .sum::<u64>()
        );
        let lists = [&info["plug_names"], &next["plug_names"]];
        let names = lists.iter().filter_map(|list| list.as_array()).flatten();
        let plugins = names.filter_map(|name| plugin_id(name.as_str()?).ok());
        let set = plugins.into_iter().fold(0, |set, id| set | 1 << id.0);
        info["plug_names"] = json!(names_of(set));
    }
}

fn add_table(merged: &mut Map<String, Value>, next: Map<String, Value>) {
    for (name, value) in next {
        match merged.get_mut(&name) {
            Some(merged) if !OF_ALL.contains(&name.as_str()) => {
                if let (Some(a), Some(b)) = (merged.as_u64(), value.as_u64()) {
                    *merged = json!(a + b);
                }
            }
            Some(_) => {}
            None => drop(merged.insert(name, value)),
        }
    }
    let (name, [dividend, divisor]) = QUOTIENT;
    let [dividend, divisor] = [dividend, divisor].map(|of| merged.get(of).and_then(Value::as_u64));
    if let (Some(quotient), Some(dividend)) = (merged.get_mut(name), dividend) {
        *quotient = json!(dividend / divisor.unwrap_or(0).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_added_up_but_for_those_of_all() {
        let mut merged = json!({"a": {"x": 1, "ticks": 7}, "b": {"y": 1}});
        Merge::Counters.add(
            &mut merged,
            json!({"a": {"x": 2, "ticks": 7, "z": 3}, "c": {"w": 4}}),
        );
        let sums = json!({"a": {"x": 3, "ticks": 7, "z": 3}, "b": {"y": 1}, "c": {"w": 4}});
        assert_eq!(merged, sums);
        let memory = |clients, table, each| json!({"memory": {"clients": clients, "tableBytes": table, "bytesPerClient": each}});
        let mut merged = memory(3, 300, 100);
        Merge::Counters.add(&mut merged, memory(0, 50, 50));
        assert_eq!(merged, memory(3, 350, 116));
    }

    #[test]
    fn what_counters_mean_is_the_same_at_all_shards() {
        let meta = json!({"a": {"name": "a", "meta": [{"name": "x", "zero": false, "info": 18}]}});
        let mut merged = meta.clone();
        Merge::Counters.add(&mut merged, meta.clone());
        assert_eq!(merged, meta);
    }

    #[test]
    fn lists_follow_each_other() {
        let mut merged = json!([1]);
        Merge::Lists.add(&mut merged, json!([2, 3]));
        assert_eq!(merged, json!([1, 2, 3]));
        Merge::Same.add(&mut merged, json!(true));
        assert_eq!(merged, json!([1, 2, 3]));
    }
}
