//! The scheduler against an ordered map, and its edges.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::time::SECOND;

#[test]
fn items_come_out_in_order_from_every_level() {
    let mut scheduler = Scheduler::new(0);
    let times = [
        5,
        19_999,
        20_000,
        20_001,
        20_480_000,
        30_000_000,
        999 * MILLISECOND,
        3 * SECOND,
    ];
    for at in times.into_iter().rev() {
        scheduler.insert(at, at);
    }
    for at in times {
        scheduler.advance(at);
        assert_eq!(scheduler.pop_due(at), Some((at, at)));
        assert_eq!(scheduler.pop_due(at), None);
    }
    assert!(scheduler.is_empty());
}

#[test]
fn one_jump_delivers_everything() {
    let mut scheduler = Scheduler::new(7);
    for i in 0..10_000 {
        scheduler.insert(i * 12_345_678 % (100 * SECOND), i);
    }
    scheduler.advance(200 * SECOND);
    let mut last = 0;
    for _ in 0..10_000 {
        let (at, _) = scheduler
            .pop_due(200 * SECOND)
            .expect("ten thousand are due");
        assert!(at >= last);
        last = at;
    }
    assert!(scheduler.is_empty());
}

#[test]
fn an_hour_ahead_is_found_by_following_next_due() {
    let mut scheduler = Scheduler::new(0);
    scheduler.insert(3600 * SECOND, ());
    let mut steps = 0;
    loop {
        let now = scheduler.next_due().expect("something waits");
        assert!(now <= 3600 * SECOND);
        scheduler.advance(now);
        if let Some((at, ())) = scheduler.pop_due(now) {
            assert_eq!((at, now), (3600 * SECOND, 3600 * SECOND));
            break;
        }
        steps += 1;
        assert!(steps < 10_000, "next_due makes no progress");
    }
}

#[test]
fn retain_drops_from_every_level() {
    let mut scheduler = Scheduler::new(0);
    for (i, at) in [1, MILLISECOND, SECOND, 5 * SECOND, 500 * SECOND]
        .into_iter()
        .enumerate()
    {
        scheduler.insert(at, (i, true));
        scheduler.insert(at, (i, false));
    }
    scheduler.retain(|item| item.1);
    assert_eq!(scheduler.len(), 5);
    scheduler.advance(600 * SECOND);
    for i in 0..5 {
        assert_eq!(
            scheduler.pop_due(600 * SECOND).map(|(_, item)| item),
            Some((i, true))
        );
    }
}

#[test]
fn what_is_far_away_is_not_touched_every_second() {
    let mut scheduler = Scheduler::new(0);
    for number in 0..1000 {
        scheduler.insert(100 * SECOND + number, number);
    }
    let mut looks = 0;
    let mut now = 0;
    while now < 99 * SECOND {
        now = scheduler.next_due().expect("a thousand wait");
        scheduler.advance(now);
        looks += 1;
    }
    assert!(looks < 5, "{looks} looks at items that are due in 100 s");
}

proptest! {
    #[test]
    fn it_behaves_like_an_ordered_map(
        start in 0u64..10 * SECOND,
        steps in proptest::collection::vec(
            (0u64..40, 0u64..8, proptest::collection::vec((0u32..34, any::<u64>()), 0..4)),
            1..200,
        ),
    ) {
        let mut now = start;
        let mut scheduler = Scheduler::new(now);
        let mut model: BTreeMap<Nanos, usize> = BTreeMap::new();
        for (shift, small, inserts) in steps {
            // Steps of all sizes: nanoseconds to minutes.
            now += small << (shift % 34);
            for (bits, value) in inserts {
                let at = now.saturating_sub(1000) + (value & ((1 << bits) - 1));
                scheduler.insert(at, at);
                *model.entry(at).or_default() += 1;
            }
            if let Some(next) = scheduler.next_due() {
                prop_assert!(next <= *model.keys().next().expect("the model holds the same"));
            }
            scheduler.advance(now);
            while let Some((at, item)) = scheduler.pop_due(now) {
                prop_assert_eq!(at, item);
                let mut first = model.first_entry().expect("the model holds the same");
                prop_assert_eq!(*first.key(), at);
                *first.get_mut() -= 1;
                if *first.get() == 0 {
                    first.remove();
                }
            }
            prop_assert!(model.keys().next().is_none_or(|&at| at > now));
            prop_assert_eq!(model.values().sum::<usize>(), scheduler.len());
        }
    }
}
