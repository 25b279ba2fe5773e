//! Answers that were heard, until their time to live is over.

use std::collections::{BTreeMap, BTreeSet};

use allosaur_api::json_schema::JsonSchema;
use allosaur_engine::time::Nanos;
use serde::Serialize;

use super::kind::{Class, Kind};
use super::message::Record;
use crate::iter::Page;

/// Nanoseconds of a second.
const SECOND: Nanos = 1_000_000_000;

/// What makes an answer the same one.
type Key = (String, Kind, Class, String);

#[derive(Debug)]
struct Entry {
    key: Key,
    ttl_s: u32,
    ends: Nanos,
}

/// A cache. Entries keep the order in which they came; what is heard when it is full is forgotten.
#[derive(Debug)]
pub(crate) struct Cache {
    entries_max: usize,
    entries: BTreeMap<u64, Entry>,
    by_key: BTreeMap<Key, u64>,
    by_end: BTreeSet<(Nanos, u64)>,
    next: u64,
    /// The first entry of the next page.
    page: u64,
}

/// An answer that is kept, in the RPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct CachedAnswer {
    /// The name.
    name: String,
    /// The type, such as `A`.
    dns_type: String,
    /// The class, such as `IN`.
    dns_class: String,
    /// For how many seconds it was said to hold.
    ttl: u32,
    /// The answer.
    answer: String,
    /// For how many seconds it is kept still.
    time_left: u64,
}

impl Cache {
    /// An empty cache for at most so many answers.
    pub(crate) fn new(entries_max: usize) -> Cache {
        Cache {
            entries_max,
            entries: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_end: BTreeSet::new(),
            next: 0,
            page: 0,
        }
    }

    /// Keeps an answer, or renews it. A time to live of zero takes it away (RFC 6762, section 10.1).
    pub(crate) fn insert(&mut self, now: Nanos, record: &Record) {
        let Some(answer) = &record.answer else {
            return;
        };
        self.expire(now);
        // The high bit of a class says "flush" in multicast DNS (RFC 6762, section 10.2).
        let class = Class(record.class.0 & 0x7fff);
        let key = (record.name.to_string(), record.kind, class, answer.clone());
        if let Some(number) = self.by_key.get(&key).copied() {
            let Some(entry) = self.entries.get_mut(&number) else {
                return;
            };
            self.by_end.remove(&(entry.ends, number));
            entry.ttl_s = record.ttl_s;
            entry.ends = now.saturating_add(u64::from(record.ttl_s) * SECOND);
            self.by_end.insert((entry.ends, number));
        } else if self.entries.len() < self.entries_max && record.ttl_s != 0 {
            let number = self.next;
            self.next += 1;
            let ends = now.saturating_add(u64::from(record.ttl_s) * SECOND);
            self.by_key.insert(key.clone(), number);
            self.by_end.insert((ends, number));
            let ttl_s = record.ttl_s;
            self.entries.insert(number, Entry { key, ttl_s, ends });
        }
    }

    /// Forgets all.
    pub(crate) fn flush(&mut self) {
        self.entries.clear();
        self.by_key.clear();
        self.by_end.clear();
    }

    /// A page of `count` answers, as the RPC has it; `reset` begins with the first.
    pub(crate) fn page(&mut self, now: Nanos, reset: bool, count: usize) -> Page<CachedAnswer> {
        self.expire(now);
        if reset {
            self.page = 0;
        }
        let entries = self.entries.range(self.page..).take(count);
        let rows: Vec<CachedAnswer> = entries
            .clone()
            .map(|(_, entry)| entry.report(now))
            .collect();
        if let Some((last, _)) = entries.last() {
            self.page = last + 1;
        }
        match (rows.is_empty(), reset) {
            (true, true) => Page::EMPTY,
            (true, false) => Page::STOPPED,
            (false, _) => Page::of(rows),
        }
    }

    fn expire(&mut self, now: Nanos) {
        while let Some(&(ends, number)) = self.by_end.first() {
            if ends > now {
                break;
            }
            self.by_end.pop_first();
            if let Some(entry) = self.entries.remove(&number) {
                self.by_key.remove(&entry.key);
            }
        }
    }
}

impl Entry {
    fn report(&self, now: Nanos) -> CachedAnswer {
        let (name, kind, class, answer) = &self.key;
        CachedAnswer {
            name: name.clone(),
            dns_type: kind.to_string(),
            dns_class: class.to_string(),
            ttl: self.ttl_s,
            answer: answer.clone(),
            time_left: self.ends.saturating_sub(now).div_ceil(SECOND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Name;
    use super::*;

    fn record(name: &str, ttl_s: u32) -> Record {
        Record {
            name: Name::new(name).expect("a name"),
            kind: Kind::A,
            class: Class::IN,
            ttl_s,
            answer: Some("1.2.3.4".to_owned()),
        }
    }

    fn names(page: &Page<CachedAnswer>) -> Vec<&str> {
        let rows = page.data.iter().flatten();
        rows.map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn answers_end_with_their_time_and_are_renewed() {
        let mut cache = Cache::new(1000);
        cache.insert(0, &record("a", 2));
        cache.insert(0, &record("b", 5));
        cache.insert(SECOND, &record("a", 3));
        let page = cache.page(2 * SECOND, true, 255);
        assert_eq!(names(&page), ["a", "b"]);
        let first = &page.data.expect("there are some")[0];
        assert_eq!((first.time_left, first.ttl), (2, 3));
        assert_eq!(names(&cache.page(4 * SECOND, true, 255)), ["b"]);
        cache.insert(4 * SECOND, &record("b", 0));
        assert_eq!(cache.page(4 * SECOND, true, 255), Page::EMPTY);
    }

    #[test]
    fn pages_go_on_where_the_last_one_ended() {
        let mut cache = Cache::new(1000);
        for name in ["a", "b", "c"] {
            cache.insert(0, &record(name, 100));
        }
        assert_eq!(names(&cache.page(0, true, 2)), ["a", "b"]);
        assert_eq!(names(&cache.page(0, false, 2)), ["c"]);
        assert_eq!(cache.page(0, false, 2), Page::STOPPED);
        assert_eq!(names(&cache.page(0, true, 1)), ["a"]);
        cache.flush();
        assert!(cache.page(0, true, 1).empty);
    }

    #[test]
    fn a_flood_of_answers_does_not_grow_the_cache() {
        let mut cache = Cache::new(1000);
        for index in 0..1000 + 100 {
            cache.insert(0, &record(&format!("host-{index}"), 100));
        }
        assert_eq!(cache.entries.len(), 1000);
        assert_eq!(cache.by_key.len(), 1000);
        cache.insert(100 * SECOND, &record("later", 100));
        assert_eq!((cache.entries.len(), cache.by_end.len()), (1, 1));
    }
}
