//! Scripts that must look the same whoever is at the ends.

use std::time::Duration;

use allosaur_engine::tcp::{CongestionAlgorithm, Ecn, Tunables};

use crate::host::Kernel;
use crate::link::Faults;
use crate::needs_taps;
use crate::pair::{Case, Outcome, Who};
use crate::script::Step::{Finish, Receive, ReceiveEnd, Reset, Rest, Send, Trade};
use crate::script::{self, Ended, Step};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Who is at the ends, besides the kernel at both.
const WITH_US: [(Who, Who); 2] = [(Who::Ours, Who::Kernel), (Who::Kernel, Who::Ours)];

/// When the machine had no time for the link for so long, somebody may have sent something again.
const STALL_MAX: Duration = Duration::from_millis(80);
/// How often a script is run again for that.
const RUNS_MAX: u32 = 3;

/// Runs a case with the kernel at both ends, and with us at each of them. Applications must see the same,
/// and the wire be sane. Gives what came of the runs with us.
fn differ(case: &Case) -> [Outcome; 2] {
    let reference = case.run(Who::Kernel, Who::Kernel);
    let resets = [&case.client, &case.server].map(|script| script.contains(&Reset));
    if resets == [false; 2] && !case.nobody_listens {
        let wanted = [&case.server, &case.client].map(|script| script::written(script));
        let got = reference.reports.map(|report| report.received);
        assert_eq!(
            got, wanted,
            "the script is wrong: the kernel has it otherwise"
        );
    }
    WITH_US.map(|(client, server)| {
        let outcome = undisturbed(case, client, server);
        let who = format!("client {client:?}, server {server:?}, seed {}", case.seed);
        assert_eq!(
            outcome.reports, reference.reports,
            "{who}: {:?}",
            outcome.counters
        );
        assert_sane(
            case,
            &outcome,
            resets.contains(&true) || case.nobody_listens,
            &who,
        );
        outcome
    })
}

/// Runs a case until the machine has time for it, but not for ever; on a bad link it does not matter.
fn undisturbed(case: &Case, client: Who, server: Who) -> Outcome {
    let mut outcome = case.run(client, server);
    for _ in 1..RUNS_MAX {
        if outcome.stalled < STALL_MAX || case.faults.is_bad() {
            break;
        }
        eprintln!(
            "once more: the machine stood still for {:?}",
            outcome.stalled
        );
        outcome = case.run(client, server);
    }
    outcome
}

fn assert_sane(case: &Case, outcome: &Outcome, has_resets: bool, who: &str) {
    for (seen, sender) in outcome.seen.iter().zip(["client", "server"]) {
        let what = format!("{who}; what the {sender} sent: {seen:?}");
        assert_eq!((seen.wrong, seen.unreadable), (0, 0), "{what}");
        // What is doubled or late may come when an end forgot all; that is answered so.
        let resets_max = if has_resets || case.faults.is_bad() {
            3
        } else {
            0
        };
        assert!(seen.resets <= resets_max, "{what}");
        // A machine that never had time does not tell whether something was sent again for nothing.
        if !case.faults.is_bad() && outcome.stalled < STALL_MAX {
            assert_eq!(seen.again, 0, "{what}");
        }
    }
    // No storms: what carries no data answers what does, or opens, closes and asks.
    let [client, server] = &outcome.seen;
    let data = client.with_data + server.with_data;
    let frames = client.frames + server.frames;
    assert!(
        frames <= 4 * data + 100,
        "{who}: {frames} frames for {data} with data"
    );
}

/// A client that asks, a server that answers, and both are done.
fn exchange(question: u64, answer: u64) -> Case {
    Case::new(
        &[Send(question), Receive(answer), Finish, ReceiveEnd],
        &[Receive(question), Send(answer), ReceiveEnd, Finish],
    )
}

/// Much of it both ways at the same time.
fn flood(bytes: u64) -> Case {
    let script = [Trade(bytes), Finish, ReceiveEnd];
    Case::new(&script, &script)
}

/// One way only: what we send, or what we receive.
fn one_way(bytes: u64) -> Case {
    Case::new(&[Send(bytes), Finish, ReceiveEnd], &[ReceiveEnd])
}

#[test]
fn a_request_and_its_response() {
    needs_taps!();
    for (question, answer) in [(1, 1), (100, 32 * KIB), (3 * KIB, 5), (0, 200 * KIB)] {
        for ipv6 in [false, true] {
            differ(&Case {
                ipv6,
                ..exchange(question, answer)
            });
        }
    }
}

#[test]
fn many_questions_one_after_the_other() {
    needs_taps!();
    let turns = 30;
    let client: Vec<Step> = (0..turns).flat_map(|_| [Send(80), Receive(700)]).collect();
    let server: Vec<Step> = (0..turns).flat_map(|_| [Receive(80), Send(700)]).collect();
    let end = [Finish, ReceiveEnd];
    differ(&Case::new(
        &[client, end.to_vec()].concat(),
        &[server, end.to_vec()].concat(),
    ));
}

#[test]
fn half_closed_by_either_side_data_still_flows() {
    needs_taps!();
    differ(&Case::new(
        &[Send(10), Finish, ReceiveEnd],
        &[ReceiveEnd, Rest(30), Send(100 * KIB), Finish],
    ));
    differ(&Case::new(
        &[Receive(10), Rest(30), Send(100 * KIB), Finish, ReceiveEnd],
        &[Send(10), Finish, ReceiveEnd],
    ));
}

#[test]
fn an_end_without_a_byte() {
    needs_taps!();
    differ(&Case::new(&[Finish, ReceiveEnd], &[ReceiveEnd]));
    differ(&Case::new(&[ReceiveEnd], &[Finish, ReceiveEnd]));
}

#[test]
fn both_close_at_the_same_time() {
    needs_taps!();
    let case = Case::new(
        &[Send(10), Receive(10), Finish, ReceiveEnd],
        &[Send(10), Receive(10), Finish, ReceiveEnd],
    );
    for outcome in differ(&Case {
        faults: Faults::slow(40),
        ..case
    }) {
        assert_eq!(outcome.reports.map(|r| r.ended), [Ended::Finished; 2]);
    }
}

#[test]
fn both_open_at_the_same_time() {
    needs_taps!();
    let case = Case {
        both_connect: true,
        faults: Faults::slow(150),
        ..flood(20 * KIB)
    };
    differ(&case);
}

#[test]
fn a_reset_is_seen_by_the_other_side() {
    needs_taps!();
    // By who asked, and by who was asked; while the peer waits.
    differ(&Case::new(
        &[Send(10), Receive(10), Reset],
        &[Receive(10), Send(10), ReceiveEnd],
    ));
    differ(&Case::new(
        &[Send(10), Receive(10), ReceiveEnd],
        &[Receive(10), Send(10), Reset],
    ));
}

#[test]
fn nobody_is_there() {
    needs_taps!();
    let case = Case {
        nobody_listens: true,
        ..Case::new(&[Send(10), ReceiveEnd], &[])
    };
    for outcome in differ(&case) {
        assert_eq!(outcome.reports[0].ended, Ended::Reset);
    }
}

#[test]
fn much_in_both_directions() {
    needs_taps!();
    for ipv6 in [false, true] {
        differ(&Case {
            ipv6,
            ..flood(4 * MIB)
        });
    }
    let ours = Tunables {
        receive_buffer_bytes: 1 << 20,
        transmit_buffer_bytes: 1 << 20,
        ..Tunables::default()
    };
    for congestion in [CongestionAlgorithm::NewReno, CongestionAlgorithm::Cubic] {
        let ours = Tunables { congestion, ..ours };
        differ(&Case {
            ours,
            ..one_way(8 * MIB)
        });
        differ(&Case {
            ours,
            faults: Faults::slow(10),
            ..flood(2 * MIB)
        });
    }
}

#[test]
fn a_closed_window_opens_again() {
    needs_taps!();
    // The kernel's buffer is full long before the application reads.
    let slow_reader = [Rest(1500), ReceiveEnd, Finish];
    let case = Case::new(&[Send(MIB), Finish, ReceiveEnd], &slow_reader);
    let kernel = Kernel {
        receive_buffer_bytes: Some(8 << 10),
        ..Kernel::default()
    };
    let ours = Tunables {
        transmit_buffer_bytes: 2 << 20,
        ..Tunables::default()
    };
    let [client, _] = differ(&Case {
        kernel: kernel.clone(),
        ours,
        ..case
    });
    assert!(client.seen[1].zero_windows > 0, "{:?}", client.seen[1]);
    let case = Case::new(&slow_reader, &[Send(MIB), Finish, ReceiveEnd]);
    let [_, server] = differ(&Case {
        kernel,
        ours,
        ..case
    });
    assert!(server.seen[0].zero_windows > 0, "{:?}", server.seen[0]);
}

#[test]
fn tiny_windows() {
    needs_taps!();
    let kernel = Kernel {
        receive_buffer_bytes: Some(1),
        ..Kernel::default()
    };
    differ(&Case {
        kernel,
        ..flood(100 * KIB)
    });
    for bytes in [1 << 10, 3000] {
        let ours = Tunables {
            receive_buffer_bytes: bytes,
            ..Tunables::default()
        };
        differ(&Case {
            ours,
            ..flood(100 * KIB)
        });
    }
    let ours = Tunables {
        transmit_buffer_bytes: 1 << 10,
        ..Tunables::default()
    };
    differ(&Case {
        ours,
        ..flood(50 * KIB)
    });
}

#[test]
fn segments_are_as_short_as_either_side_wants() {
    needs_taps!();
    for mss_bytes in [100, 536, 1000, 1460] {
        let ours = Tunables {
            mss_bytes,
            ..Tunables::default()
        };
        for outcome in differ(&Case {
            ours,
            ..flood(100 * KIB)
        }) {
            for seen in &outcome.seen {
                assert!(seen.segment_bytes_max <= u32::from(mss_bytes), "{seen:?}");
            }
        }
    }
    for (mtu, ipv6) in [(576, false), (1280, false), (1280, true)] {
        let kernel = Kernel {
            mtu,
            ..Kernel::default()
        };
        let headers = if ipv6 { 60 } else { 40 };
        for outcome in differ(&Case {
            kernel,
            ipv6,
            ..flood(100 * KIB)
        }) {
            for seen in &outcome.seen {
                assert!(
                    seen.segment_bytes_max <= u32::from(mtu) - headers,
                    "{seen:?}"
                );
            }
        }
    }
}

#[test]
fn options_are_used_when_both_sides_want_them() {
    needs_taps!();
    let settings = [
        "ipv4/tcp_timestamps",
        "ipv4/tcp_sack",
        "ipv4/tcp_window_scaling",
    ];
    for off in 0..=settings.len() {
        let settings = settings.iter().take(off).map(|path| (*path, "0")).collect();
        let kernel = Kernel {
            settings,
            ..Kernel::default()
        };
        for (rfc1323, sack) in [(true, true), (false, true), (true, false)] {
            let ours = Tunables {
                rfc1323,
                sack,
                ..Tunables::default()
            };
            let case = Case {
                kernel: kernel.clone(),
                ours,
                ..flood(200 * KIB)
            };
            for outcome in differ(&case) {
                let timestamps = outcome.seen.iter().map(|seen| seen.with_timestamps > 0);
                let are_wanted = off == 0 && rfc1323;
                assert!(timestamps.eq([are_wanted; 2]), "{:?}", outcome.seen);
            }
        }
    }
}

#[test]
fn congestion_is_told_without_loss() {
    needs_taps!();
    let kernel = Kernel {
        settings: vec![("ipv4/tcp_ecn", "1")],
        ..Kernel::default()
    };
    for ecn in [Ecn::Active, Ecn::Passive] {
        let ours = Tunables {
            ecn,
            ..Tunables::default()
        };
        let faults = Faults {
            marked: 50,
            ..Faults::slow(2)
        };
        let case = Case {
            kernel: kernel.clone(),
            ours,
            faults,
            ..flood(MIB)
        };
        let [client, server] = differ(&case);
        // Who asks: we, only with Active; the kernel always.
        let used = [(client, ecn == Ecn::Active), (server, true)];
        for (outcome, is_used) in used {
            for seen in &outcome.seen {
                assert_eq!(seen.congestion_echoes > 0, is_used, "{ecn:?} {seen:?}");
                assert_eq!(seen.windows_reduced > 0, is_used, "{ecn:?} {seen:?}");
            }
        }
    }
}

#[test]
fn silence_is_asked_about_and_survived() {
    needs_taps!();
    let kernel = Kernel {
        keepalive_s: Some(1),
        ..Kernel::default()
    };
    let ours = Tunables {
        keepalive_idle_ms: 1_000,
        keepalive_interval_ms: 1_000,
        ..Tunables::default()
    };
    let case = Case::new(
        &[
            Send(10),
            Receive(10),
            Rest(2600),
            Send(10),
            Finish,
            ReceiveEnd,
        ],
        &[Receive(10), Send(10), Receive(10), Finish, ReceiveEnd],
    );
    for outcome in differ(&Case {
        kernel,
        ours,
        ..case
    }) {
        for seen in &outcome.seen {
            assert!(seen.questions > 0, "{seen:?}");
        }
    }
}

/// A link that does everything at once.
fn bad(delay_ms: u64) -> Faults {
    Faults {
        delay: Duration::from_millis(delay_ms),
        lost: 20,
        doubled: 10,
        late: 50,
        late_by: Duration::from_millis(delay_ms + 2),
        marked: 0,
    }
}

#[test]
fn a_bad_link_harms_no_byte() {
    needs_taps!();
    for seed in 1..=6 {
        let ours = Tunables {
            sack: seed % 2 == 0,
            rfc1323: seed % 3 != 0,
            congestion: [CongestionAlgorithm::NewReno, CongestionAlgorithm::Cubic]
                [seed as usize / 4],
            ..Tunables::default()
        };
        let case = Case {
            seed,
            ours,
            ipv6: seed == 5,
            faults: bad(5),
            ..flood(300 * KIB)
        };
        for outcome in differ(&case) {
            let again: u64 = outcome.seen.iter().map(|seen| seen.again).sum();
            assert!(again > 0, "the link lost nothing");
        }
    }
}

#[test]
fn short_talks_over_a_bad_link() {
    needs_taps!();
    for seed in 100..112 {
        differ(&Case {
            seed,
            faults: bad(2),
            ..exchange(100, 3 * KIB)
        });
    }
}

#[test]
fn what_comes_out_of_order_is_put_in_order() {
    needs_taps!();
    let faults = Faults {
        late: 300,
        late_by: Duration::from_millis(4),
        ..Faults::slow(1)
    };
    for sack in [true, false] {
        let ours = Tunables {
            sack,
            ..Tunables::default()
        };
        let [client, server] = differ(&Case {
            ours,
            faults,
            ..flood(200 * KIB)
        });
        for seen in [&client.seen[0], &server.seen[1]] {
            assert_eq!(seen.with_blocks > 0, sack, "{seen:?}");
        }
    }
}

#[test]
fn a_kernel_that_remembers_nothing_of_a_request() {
    needs_taps!();
    // It answers each SYN by a cookie, and knows of the connection only when the acknowledgment is there.
    let settings = vec![("ipv4/tcp_syncookies", "2")];
    let kernel = Kernel {
        settings,
        ..Kernel::default()
    };
    for ipv6 in [false, true] {
        let kernel = kernel.clone();
        differ(&Case {
            kernel,
            ipv6,
            ..exchange(2000, 50 * KIB)
        });
    }
}

#[test]
fn the_kernel_avoids_congestion_in_another_way() {
    needs_taps!();
    let path = "ipv4/tcp_congestion_control";
    // A namespace may use only what all may.
    let allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let allowed = std::fs::read_to_string(allowed).expect("the kernel has TCP");
    for algorithm in allowed.split_whitespace() {
        let name: &'static str = String::from(algorithm).leak();
        let kernel = Kernel {
            settings: vec![(path, name)],
            ..Kernel::default()
        };
        differ(&Case {
            kernel,
            faults: bad(3),
            ..flood(200 * KIB)
        });
    }
}
