//! What a host reports, when and in which packets; and that no sequence of calls breaks it.

use allosaur_engine::time::{MILLISECOND, SECOND};
use proptest::prelude::*;

use super::groups::{GROUPS_MAX, SOURCES_MAX};
use super::*;

type Address = [u8; 4];

#[derive(Debug)]
struct Short;

impl Family for Short {
    type Address = Address;
    const OVERHEAD_BYTES: usize = 74;
    const VERSION_MAX: u8 = 3;
    const TABLE: &'static str = "short";
    const COUNTERS: &'static [Count] = &[];
    const META: &'static [CounterMeta] = &[];
}

/// What was sent: kind, group and sources of each record, packet by packet.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Records(Vec<(u8, Address, Vec<Address>)>),
    Report(Address),
    Leave(Address),
}

fn read(message: &Message<'_, Address>) -> Sent {
    let (count, mut rest) = match *message {
        Message::Records { count, bytes } => (count, bytes),
        Message::Report(group) => return Sent::Report(group),
        Message::Leave(group) => return Sent::Leave(group),
    };
    let mut records = Vec::new();
    for _ in 0..count {
        let &[kind, 0, high, low, a, b, c, d] = rest.first_chunk().expect("a whole record") else {
            panic!("auxiliary data");
        };
        let sources = usize::from(u16::from_be_bytes([high, low]));
        let (listed, behind) = rest[8..].split_at(4 * sources);
        let (listed, []) = listed.as_chunks::<4>() else {
            panic!("a cut source");
        };
        records.push((kind, [a, b, c, d], listed.to_vec()));
        rest = behind;
    }
    assert!(rest.is_empty(), "bytes behind the last record");
    Sent::Records(records)
}

fn sent(run: impl FnOnce(&mut Send<'_, Address>)) -> Vec<Sent> {
    let mut list = Vec::new();
    run(&mut |message, _| {
        list.push(read(&message));
        Ok(())
    });
    list
}

fn group(number: u16) -> Address {
    let [high, low] = number.to_be_bytes();
    [239, 0, high, low]
}

fn general(version: u8, max_response: Nanos) -> Query<Address> {
    Query {
        version,
        group: None,
        has_sources: false,
        max_response,
    }
}

/// A host with so many groups, and an MTU for so many records a packet.
fn host(groups: u16, records: u16) -> MulticastHost<Short> {
    let mut host = MulticastHost::new(74 + 8 * records, 3);
    let groups: Vec<_> = (0..groups).map(group).collect();
    host.add(&groups, &mut |_, _| Ok(())).expect("new groups");
    host
}

/// All that is sent from `from` on, with the time.
fn run(host: &mut MulticastHost<Short>) -> Vec<(Nanos, Sent)> {
    let mut all = Vec::new();
    while let Some(at) = host.poll_timeout() {
        let list = sent(|send| host.handle_timeout(at, send));
        all.extend(list.into_iter().map(|one| (at, one)));
    }
    all
}

#[test]
fn changes_are_reported_at_once_in_full_packets() {
    let mut host = MulticastHost::<Short>::new(74 + 16, 3);
    let groups = [group(1), group(2), group(3)];
    let list = sent(|send| host.add(&groups, send).expect("new groups"));
    let record = |number| (4, group(number), vec![]);
    assert_eq!(
        list,
        [
            Sent::Records(vec![record(1), record(2)]),
            Sent::Records(vec![record(3)])
        ]
    );
    let list = sent(|send| {
        let left = host.remove(&[group(2), group(9), group(1)], send);
        assert_eq!(left, Err((GroupError::Missing, group(9))));
    });
    assert_eq!(list, [Sent::Records(vec![(3, group(2), vec![])])]);
    host.set_version(2);
    let list = sent(|send| host.remove(&[group(1)], send).expect("it is there"));
    assert_eq!(list, [Sent::Leave(group(1))]);
}

#[test]
fn a_short_answer_comes_within_the_time_of_the_router() {
    let mut host = host(2, 2);
    host.handle_query(
        SECOND,
        &general(3, 2 * SECOND),
        |max| max / 2,
        &mut |_, _| panic!("not at once"),
    );
    let all = run(&mut host);
    let records = vec![(2, group(0), vec![]), (2, group(1), vec![])];
    assert_eq!(all, [(1950 * MILLISECOND, Sent::Records(records))]);
}

#[test]
fn a_long_answer_is_spread_and_leaves_later_groups_out() {
    let mut host = host(7, 2);
    let query = general(3, SECOND);
    host.handle_query(0, &query, |_| unreachable!(), &mut |_, _| Ok(()));
    host.handle_query(1, &query, |_| unreachable!(), &mut |_, _| Ok(()));
    assert_eq!(host.counts.values[Count::QueriesWhileAnswering as usize], 1);
    host.add(&[group(50)], &mut |_, _| Ok(()))
        .expect("a new group");
    // The group that is next goes away; the answer goes on behind it.
    host.remove(&[group(0)], &mut |_, _| Ok(()))
        .expect("it is there");
    let all = run(&mut host);
    let times: Vec<_> = all.iter().map(|(at, _)| at / MILLISECOND).collect();
    assert_eq!(times, [200, 400, 600]);
    let told = all.iter().flat_map(|(_, one)| match one {
        Sent::Records(records) => records.iter().map(|record| record.1).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    });
    assert_eq!(told.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6].map(group));
    // The next answer has it.
    host.handle_query(5 * SECOND, &query, |_| unreachable!(), &mut |_, _| Ok(()));
    assert_eq!(run(&mut host).len(), 4);
}

#[test]
fn an_answer_is_cancelled_when_the_version_changes() {
    // 41 groups in 2 packets, the second 1.4 s after the first.
    let begin = || {
        let mut host = host(41, 22);
        let query = general(3, 2900 * MILLISECOND);
        host.handle_query(0, &query, |_| unreachable!(), &mut |_, _| Ok(()));
        assert_eq!(host.poll_timeout(), Some(1400 * MILLISECOND));
        host
    };
    // A general query of an older version is answered by a report for each group, in its own time.
    let mut older = begin();
    let query = general(1, 410 * MILLISECOND);
    older.handle_query(SECOND, &query, |_| unreachable!(), &mut |_, _| Ok(()));
    assert_eq!(
        older.counts.values[Count::QueriesWhileAnswering as usize],
        0
    );
    let all = run(&mut older);
    assert_eq!((all.len(), all[40].0), (41, 1369 * MILLISECOND));
    assert_eq!(all[40].1, Sent::Report(group(40)));
    // One about a group is answered at once, and no more is said of the others.
    let mut single = begin();
    let query = Query {
        group: Some(group(7)),
        ..general(2, SECOND)
    };
    let list = sent(|send| single.handle_query(SECOND, &query, |_| unreachable!(), send));
    assert_eq!(list, [Sent::Report(group(7))]);
    assert_eq!(run(&mut single), []);
    // The same version again goes on with it.
    let mut same = begin();
    same.set_version(3);
    assert_eq!(run(&mut same).len(), 2);
}

#[test]
fn no_answer_is_faster_than_one_packet_a_millisecond() {
    let mut host = host(50, 1);
    host.handle_query(0, &general(2, 10 * MILLISECOND), |_| 0, &mut |_, _| Ok(()));
    assert_eq!(host.counts.values[Count::RateTooHigh as usize], 1);
    let all = run(&mut host);
    assert_eq!((all.len(), all[49].0), (50, 50 * MILLISECOND));
    assert_eq!(all[49].1, Sent::Report(group(49)));
}

#[test]
fn two_hundred_groups_are_told_within_the_time_of_the_router() {
    // One packet and a bit: with the whole time as the gap, the second came twice as late.
    let mut host = MulticastHost::<Short>::new(1500, 3);
    let groups: Vec<_> = (0..200).map(group).collect();
    host.add(&groups, &mut |_, _| Ok(())).expect("new groups");
    let query = general(3, 2400 * MILLISECOND);
    host.handle_query(0, &query, |_| unreachable!(), &mut |_, _| Ok(()));
    let all = run(&mut host);
    let times: Vec<_> = all.iter().map(|(at, _)| at / MILLISECOND).collect();
    assert_eq!(times, [1100, 2200]);
}

#[test]
fn a_group_without_a_source_left_is_not_told() {
    let (source, query) = ([10, 0, 0, 1], general(3, SECOND));
    let single = Query {
        group: Some(group(1)),
        ..query
    };
    let mut host = MulticastHost::<Short>::new(1500, 3);
    let quiet = &mut |_: Message<'_, Address>, _| Ok(());
    host.add_sources(&[(group(1), source)], quiet)
        .expect("a new group");
    host.add(&[group(2)], quiet).expect("a new group");
    let block = sent(|send| {
        let removed = host.remove_sources(&[(group(1), source)], send);
        removed.expect("it is there");
    });
    assert_eq!(block, [Sent::Records(vec![(6, group(1), vec![source])])]);
    host.handle_query(0, &query, |_| 0, quiet);
    let told = sent(|send| host.handle_query(0, &query, |_| 0, send));
    assert_eq!(told, [Sent::Records(vec![(2, group(2), vec![])])]);
    let told = sent(|send| host.handle_query(0, &single, |_| 0, send));
    assert_eq!(told, []);
    // The versions before know no sources: with the last of them the group is left, and it is
    // joined again with the next.
    host.set_version(2);
    let older = Query {
        version: 2,
        ..single
    };
    assert_eq!(sent(|send| host.handle_query(0, &older, |_| 0, send)), []);
    let joined = sent(|send| {
        let added = host.add_sources(&[(group(1), source)], send);
        added.expect("it is gone");
    });
    assert_eq!(joined, [Sent::Report(group(1))]);
    let left = sent(|send| {
        let removed = host.remove_sources(&[(group(1), source)], send);
        removed.expect("it is there");
    });
    assert_eq!(left, [Sent::Leave(group(1))]);
    let removed = sent(|send| host.remove(&[group(1)], send).expect("it is there"));
    assert_eq!(removed, [], "it was left already");
}

#[test]
fn a_group_that_may_not_be_left_stays_in_the_answer() {
    let mut host = host(3, 1);
    host.join(0, group(0));
    host.handle_timeout(JOIN_DELAY, &mut |_, _| Ok(()));
    host.remove(&[group(0)], &mut |_, _| Ok(()))
        .expect("the user's");
    let query = general(3, SECOND);
    host.handle_query(SECOND, &query, |_| unreachable!(), &mut |_, _| Ok(()));
    let refused = host.remove(&[group(0)], &mut |_, _| Ok(()));
    assert_eq!(refused, Err((GroupError::NotManaged, group(0))));
    assert_eq!(run(&mut host).len(), 3);
}

#[test]
fn sources_are_split_over_packets_and_none_is_lost() {
    let mut host = MulticastHost::<Short>::new(256, 3);
    let source = |number: u16| [10, 0, number.to_be_bytes()[0], number.to_be_bytes()[1]];
    let pairs: Vec<_> = (0..100).map(|number| (group(1), source(number))).collect();
    let list = sent(|send| host.add_sources(&pairs, send).expect("new sources"));
    assert_eq!(list[0], Sent::Records(vec![(3, group(1), vec![])]));
    let query = Query {
        group: Some(group(1)),
        ..general(3, SECOND)
    };
    let list = sent(|send| host.handle_query(0, &query, |max| max, send));
    let told = list.iter().flat_map(|one| match one {
        Sent::Records(records) => {
            assert_eq!((records.len(), records[0].0), (1, 1));
            records[0].2.clone()
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        (0..100).map(source).collect::<Vec<_>>()
    );
    assert_eq!(list.len(), 3);
    let refused = host.add_sources(&[(group(1), source(7))], &mut |_, _| Ok(()));
    assert_eq!(
        refused,
        Err((GroupError::SourceExists, group(1), source(7)))
    );
}

#[test]
fn groups_of_clients_are_counted_and_reported_together() {
    let mut host = MulticastHost::<Short>::new(1500, 3);
    for number in [1, 2, 1] {
        host.join(0, group(number));
    }
    let all = run(&mut host);
    let records = vec![(4, group(1), vec![]), (4, group(2), vec![])];
    assert_eq!(all, [(JOIN_DELAY, Sent::Records(records))]);
    // A user may take such a group too, and leave it; the clients stay in it.
    let list = sent(|send| host.add(&[group(1)], send).expect("not the user's"));
    assert_eq!(list, []);
    let list = sent(|send| host.remove(&[group(1)], send).expect("the user's"));
    assert_eq!(list, []);
    let again = host.remove(&[group(1)], &mut |_, _| Ok(()));
    assert_eq!(again, Err((GroupError::NotManaged, group(1))));
    host.leave(0, group(1));
    assert_eq!(run(&mut host), []);
    host.leave(0, group(1));
    let gone = Sent::Records(vec![(3, group(1), vec![])]);
    assert_eq!(run(&mut host), [(JOIN_DELAY, gone)]);
}

#[test]
fn tables_have_an_end() {
    let mut host = MulticastHost::<Short>::new(1500, 3);
    let sources = (0..=SOURCES_MAX as u32).map(|number| (group(1), number.to_be_bytes()));
    let refused = host.add_sources(&sources.collect::<Vec<_>>(), &mut |_, _| Ok(()));
    assert!(
        matches!(refused, Err((GroupError::Full, ..))),
        "{refused:?}"
    );
    let mut groups = Groups::default();
    let all = (0..GROUPS_MAX as u32).all(|number| groups.add(number) == Ok(true));
    assert!(all && groups.len() == GROUPS_MAX);
    assert_eq!(groups.add(u32::MAX), Err(GroupError::Full));
    assert_eq!(groups.join(u32::MAX), Err(GroupError::Full));
    assert_eq!(groups.remove(7), Ok(true));
    assert_eq!(groups.add(u32::MAX), Ok(true));
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8),
    Remove(u8),
    AddSource(u8, u8),
    RemoveSource(u8, u8),
    Join(u8),
    Leave(u8),
    Query(u8, Option<u8>, u64),
    Wait(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<u8>().prop_map(Step::Add),
        any::<u8>().prop_map(Step::Remove),
        any::<(u8, u8)>().prop_map(|(g, s)| Step::AddSource(g % 16, s)),
        any::<(u8, u8)>().prop_map(|(g, s)| Step::RemoveSource(g % 16, s)),
        any::<u8>().prop_map(Step::Join),
        any::<u8>().prop_map(Step::Leave),
        (1u8..=3, any::<Option<u8>>(), 0u64..3 * SECOND)
            .prop_map(|(version, group, max)| Step::Query(version, group, max)),
        (0u64..SECOND).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever comes, packets are whole and within the MTU, and every answer ends.
    #[test]
    fn any_steps_are_safe(
        steps in prop::collection::vec(any_step(), 0..120),
        mtu in 256u16..700,
    ) {
        let mut host = MulticastHost::<Short>::new(mtu, 3);
        let mut now = 0;
        let mut send = |message: Message<'_, Address>, _| {
            if let Message::Records { count, bytes } = &message {
                assert!(*count > 0 && bytes.len() + 74 <= usize::from(mtu));
            }
            read(&message);
            Ok(())
        };
        for step in steps {
            let short = |number: u8| group(number.into());
            match step {
                Step::Add(number) => drop(host.add(&[short(number)], &mut send)),
                Step::Remove(number) => drop(host.remove(&[short(number)], &mut send)),
                Step::AddSource(g, s) => {
                    let _ = host.add_sources(&[(short(g), short(s))], &mut send);
                }
                Step::RemoveSource(g, s) => {
                    let _ = host.remove_sources(&[(short(g), short(s))], &mut send);
                }
                Step::Join(number) => host.join(now, short(number)),
                Step::Leave(number) => host.leave(now, short(number)),
                Step::Query(version, group, max_response) => {
                    let query = Query {
                        version,
                        group: group.map(short),
                        has_sources: false,
                        max_response,
                    };
                    host.handle_query(now, &query, |max| max, &mut send);
                }
                Step::Wait(time) => {
                    now += time;
                    host.handle_timeout(now, &mut send);
                }
            }
        }
        let end = now + 100 * SECOND;
        host.handle_timeout(end, &mut send);
        prop_assert_eq!(host.poll_timeout(), None);
        prop_assert!(host.groups().len() <= 256);
    }

    /// After each general query, all that is listened to is told within its time, whatever answer it
    /// came into.
    #[test]
    fn each_query_is_answered_in_its_time(
        groups in prop::collection::vec(0u16..30, 1..40),
        mtu in 256u16..700,
        queries in prop::collection::vec((0u64..700, 100u64..3000), 1..6),
        draw in any::<u64>(),
    ) {
        let mut host = MulticastHost::<Short>::new(mtu, 3);
        let mut quiet = |_: Message<'_, Address>, _: u8| Ok(());
        let mut listened = Vec::new();
        for (number, &sources) in groups.iter().enumerate() {
            let group = group(number as u16);
            let pairs: Vec<_> = (0..sources).map(|one| (group, [10, 0, 0, one as u8])).collect();
            listened.extend(pairs.iter().map(|&(group, source)| (group, Some(source))));
            if pairs.is_empty() {
                host.add(&[group], &mut quiet).expect("a new group");
                listened.push((group, None));
            }
            host.add_sources(&pairs, &mut quiet).expect("new sources");
        }
        let (mut told, mut asked) = (Vec::new(), Vec::new());
        let mut now = 0;
        let mut note = |at: Nanos, list: Vec<Sent>| {
            for one in list {
                let Sent::Records(records) = one else {
                    panic!("{one:?}");
                };
                for (_, group, sources) in records {
                    told.extend(sources.iter().map(|&source| (at, (group, Some(source)))));
                    if sources.is_empty() {
                        told.push((at, (group, None)));
                    }
                }
            }
        };
        for (wait, max_response) in queries {
            now += wait * MILLISECOND;
            while let Some(at) = host.poll_timeout().filter(|&at| at < now) {
                note(at, sent(|send| host.handle_timeout(at, send)));
            }
            let max_response = max_response * MILLISECOND;
            let query = general(3, max_response);
            let list = sent(|send| host.handle_query(now, &query, |max| draw % (max + 1), send));
            note(now, list);
            asked.push((now, now + max_response));
        }
        while let Some(at) = host.poll_timeout() {
            note(at, sent(|send| host.handle_timeout(at, send)));
        }
        prop_assert_eq!(host.counts.values[Count::RateTooHigh as usize], 0);
        for (from, until) in asked {
            for one in &listened {
                let is_told = |(at, told): &(Nanos, _)| (from..=until).contains(at) && told == one;
                prop_assert!(told.iter().any(is_told), "{:?} from {} to {}", one, from, until);
            }
        }
    }
}
