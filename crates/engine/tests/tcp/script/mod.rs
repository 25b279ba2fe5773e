//! Packet scripts: a conversation with one connection, line by line, under virtual time.
//!
//! | line | meaning |
//! |---|---|
//! | `set NAME=VALUE` | a tunable, before the connection begins |
//! | `connect`, `listen` | our side asks; our side waits for a SYN |
//! | `established [win N]` | the three segments of a usual beginning, as client |
//! | `write N`, `close`, `write N close`, `abort` | what the application does |
//! | `< S. 0:0(0) ack 1 win 65535 <mss 1000>` | a segment arrives; `ce` at the end: marked |
//! | `> . 1:1(0) ack 1 win 32768` | this leaves now, and nothing before it; what is not said is not compared |
//! | `+200ms > ...`, `+200ms < ...` | the same that much later, and nothing leaves until then |
//! | `wait 3s` | time passes in silence |
//! | `none` | nothing left; so it is too before each line that does something |
//! | `block`, `unblock` | the port takes nothing; it does again |
//! | `state`, `delivered`, `acknowledged`, `connected`, `peer closed`, `ended`, `refused` | what the outcomes told since the last such line |
//! | `cwnd N`, `ssthresh N`, `rto 1s`, `counter NAME=N` | what can be seen from outside |

mod words;

use std::collections::VecDeque;

use allosaur_engine::tcp::{
    Connection, End, Outcome, Progress, RecoveryPool, Segment, Seq, TcpContext, TcpCounters,
    TcpState, Tunables,
};

use words::{CLOCK_MS, OURS, parse, parse_ms, parse_segment, write_options, write_segment};

/// Runs a script; a line that does not hold fails the test, with what happened before it.
pub(crate) fn run(script: &str) {
    if let Err(trouble) = try_run(script) {
        panic!("{trouble}");
    }
}

/// The same, for tests of scripts themselves.
fn try_run(script: &str) -> Result<(), String> {
    let mut stage = Stage::new();
    for (number, line) in (1..).zip(script.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let result = stage.perform(line);
        stage.check_invariants();
        if let Err(trouble) = result {
            return Err(format!(
                "line {number}: {line}\n  {trouble}\n{}",
                stage.story()
            ));
        }
    }
    let left = stage.expect_nothing();
    left.map_err(|trouble| format!("at the end: {trouble}\n{}", stage.story()))
}

/// A connection, its clock, and what it sent that no line has named yet.
struct Stage {
    now_ms: u32,
    tunables: Tunables,
    counters: TcpCounters,
    recovery: RecoveryPool,
    connection: Option<Connection>,
    listens: bool,
    blocked: bool,
    sent: VecDeque<(u32, Segment)>,
    told: Outcome,
    history: Vec<String>,
}

impl Stage {
    fn new() -> Stage {
        Stage {
            now_ms: 0,
            // Numbers that are easy to read; options only where a script asks for them.
            tunables: Tunables {
                mss_bytes: 1_000,
                rfc1323: false,
                sack: false,
                ..Tunables::default()
            },
            counters: TcpCounters::default(),
            recovery: RecoveryPool::default(),
            connection: None,
            listens: false,
            blocked: false,
            sent: VecDeque::new(),
            told: Outcome::default(),
            history: Vec::new(),
        }
    }

    fn story(&self) -> String {
        let state = self.connection.as_ref().map(Connection::state);
        let mut text = format!("  now {} ms, state {state:?}; until then:", self.now_ms);
        for line in &self.history {
            text += &format!("\n    {line}");
        }
        text
    }

    /// Does what a line says.
    fn perform(&mut self, line: &str) -> Result<(), String> {
        if let Some(later) = line.strip_prefix('+') {
            let (time, line) = later.split_once(' ').ok_or("a time needs a line")?;
            self.pass(parse_ms(time)?, line.starts_with('>'))?;
            return self.perform(line.trim());
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(result) = self.look(word, rest) {
            return result;
        }
        if word == ">" {
            return self.expect(rest);
        }
        self.expect_nothing()?;
        if word == "set" {
            return words::set(&mut self.tunables, rest);
        }
        self.history.push(format!("{:>6} ms  {line}", self.now_ms));
        self.act(word, rest)
    }

    fn act(&mut self, word: &str, rest: &str) -> Result<(), String> {
        match word {
            "connect" => {
                self.with_context(|connection, cx| {
                    *connection = Some(Connection::connect(cx, Seq(OURS)));
                });
            }
            "listen" => self.listens = true,
            "established" => return self.establish(rest),
            "write" => {
                let (bytes, close) = rest.split_once(' ').unwrap_or((rest, ""));
                let bytes = parse(bytes)?;
                let counters = &mut self.counters;
                let connection = self.connection.as_mut();
                connection
                    .ok_or("there is no connection")?
                    .write(bytes, counters);
                if close == "close" {
                    self.connection()?.close();
                }
            }
            "close" => self.connection()?.close(),
            "abort" => self.connection()?.abort(),
            "<" => self.arrive(&parse_segment(rest, false)?.segment)?,
            "wait" => return self.pass(parse_ms(rest)?, false),
            "none" => return Ok(()),
            "block" => self.blocked = true,
            "unblock" => self.blocked = false,
            _ => return Err(format!("`{word}` is no command")),
        }
        self.transmit();
        Ok(())
    }

    fn establish(&mut self, rest: &str) -> Result<(), String> {
        let window = rest.strip_prefix("win ").unwrap_or("65535");
        let sack = if self.tunables.sack { ",sackOK" } else { "" };
        let scale = if self.tunables.rfc1323 {
            ",TS 1 0,ws 0"
        } else {
            ""
        };
        self.perform("connect")?;
        self.perform("> S 0:0(0)")?;
        self.perform(&format!(
            "< S. 0:0(0) ack 1 win {window} <mss 1000{sack}{scale}>"
        ))?;
        self.perform("> . 1:1(0) ack 1")?;
        self.perform("connected")
    }

    fn with_context<R>(
        &mut self,
        act: impl FnOnce(&mut Option<Connection>, &mut TcpContext<'_>) -> R,
    ) -> R {
        let mut cx = TcpContext {
            now_ms: self.now_ms.wrapping_add(CLOCK_MS),
            now_us: self.now_ms.wrapping_mul(1_000).wrapping_add(CLOCK_MS),
            tunables: &self.tunables,
            counters: &mut self.counters,
            unread_bytes: 0,
            recovery: &mut self.recovery,
        };
        act(&mut self.connection, &mut cx)
    }

    fn connection(&mut self) -> Result<&mut Connection, String> {
        self.connection
            .as_mut()
            .ok_or("there is no connection".to_owned())
    }

    /// A segment arrives: for the connection, or for who listens.
    fn arrive(&mut self, segment: &Segment) -> Result<(), String> {
        let is_free = self
            .connection
            .as_ref()
            .is_none_or(|old| old.may_be_replaced_by(segment));
        if self.listens && is_free {
            self.with_context(|connection, cx| {
                if let Some(old) = connection {
                    old.release(cx.recovery);
                }
                *connection = Some(Connection::accept(cx, Seq(OURS), segment));
            });
            return Ok(());
        }
        self.connection()?;
        let outcome = self.with_context(|connection, cx| {
            let connection = connection.as_mut().expect("it was there a line above");
            connection.handle_segment(cx, segment)
        });
        self.note(outcome);
        Ok(())
    }

    fn note(&mut self, outcome: Outcome) {
        self.told.delivered_bytes += outcome.delivered_bytes;
        self.told.acknowledged_bytes += outcome.acknowledged_bytes;
        self.told.connected |= outcome.connected;
        self.told.peer_closed |= outcome.peer_closed;
        self.told.refused |= outcome.refused;
        self.told.ended = outcome.ended.or(self.told.ended);
    }

    /// Takes what may leave.
    fn transmit(&mut self) {
        if self.connection.is_none() {
            return;
        }
        let (blocked, mut left) = (self.blocked, Vec::new());
        let outcome = self.with_context(|connection, cx| {
            let mut outcome = Outcome::default();
            let connection = connection.as_mut().expect("it was there a line above");
            let progress = connection.poll_transmit(cx, &mut outcome, &mut |segment: &Segment| {
                if !blocked {
                    left.push(*segment);
                }
                !blocked
            });
            assert!(blocked || progress == Progress::Done);
            outcome
        });
        self.note(outcome);
        for segment in left {
            let text = write_segment(&segment);
            self.history
                .push(format!("{:>6} ms  > {text}", self.now_ms));
            self.sent.push_back((self.now_ms, segment));
        }
    }

    /// Lets time pass, with what is due in it; nothing may leave before its end, and at the end
    /// only when the line says so.
    fn pass(&mut self, ms: u32, may_send_at_end: bool) -> Result<(), String> {
        self.expect_nothing()?;
        let until_ms = self.now_ms + ms;
        loop {
            let now_ms = self.now_ms.wrapping_add(CLOCK_MS);
            let left_ms = self
                .connection
                .as_ref()
                .and_then(|it| it.poll_timeout(now_ms));
            let Some(at_ms) = left_ms
                .map(|left| self.now_ms + left)
                .filter(|at| *at <= until_ms)
            else {
                break;
            };
            self.now_ms = at_ms;
            let outcome = self.with_context(|connection, cx| {
                connection
                    .as_mut()
                    .expect("it has a timer")
                    .handle_timeout(cx)
            });
            self.note(outcome);
            self.transmit();
            if self.now_ms < until_ms {
                self.expect_nothing()?;
            }
        }
        self.now_ms = until_ms;
        if may_send_at_end {
            Ok(())
        } else {
            self.expect_nothing()
        }
    }

    fn expect_nothing(&self) -> Result<(), String> {
        match self.sent.front() {
            None => Ok(()),
            Some((at_ms, segment)) => {
                let text = write_segment(segment);
                Err(format!(
                    "nothing should have left, but at {at_ms} ms: > {text}"
                ))
            }
        }
    }

    /// The next segment that left is the one that the line tells.
    fn expect(&mut self, text: &str) -> Result<(), String> {
        let told = parse_segment(text, true)?;
        let (at_ms, sent) = self.sent.pop_front().ok_or("nothing left")?;
        let (want, is) = (&told.segment, write_segment(&sent));
        let is_same = want.flags == sent.flags
            && (want.seq, want.len, want.ecn) == (sent.seq, sent.len, sent.ecn)
            && (!told.has_ack || want.ack == sent.ack)
            && (!told.has_window || want.window == sent.window)
            && (!told.has_options || write_options(want) == write_options(&sent));
        if !is_same || at_ms != self.now_ms {
            return Err(format!("but at {at_ms} ms: > {is}"));
        }
        Ok(())
    }

    /// Lines that only look; `None` when it is none of them.
    fn look(&mut self, word: &str, rest: &str) -> Option<Result<(), String>> {
        let told = &mut self.told;
        let is = match word {
            "delivered" => std::mem::take(&mut told.delivered_bytes).to_string(),
            "acknowledged" => std::mem::take(&mut told.acknowledged_bytes).to_string(),
            "connected" => return Some(yes(std::mem::take(&mut told.connected))),
            "refused" => return Some(yes(std::mem::take(&mut told.refused))),
            "peer" => return Some(yes(std::mem::take(&mut told.peer_closed))),
            "ended" => match told.ended.take() {
                None => "no".to_owned(),
                Some(End::Closed) => "closed".to_owned(),
                Some(End::Reset) => "reset".to_owned(),
                Some(End::TimedOut) => "timed out".to_owned(),
                Some(End::CutOff) => "cut off".to_owned(),
            },
            "state" => match &self.connection {
                None => "none".to_owned(),
                Some(connection) => state_name(connection.state()).to_owned(),
            },
            "cwnd" | "ssthresh" | "rto" => {
                let info = self
                    .connection
                    .as_ref()?
                    .info(&self.tunables, &self.recovery);
                match word {
                    "cwnd" => info.congestion_window_bytes.to_string(),
                    "ssthresh" => info
                        .threshold_bytes
                        .map_or("none".into(), |it| it.to_string()),
                    _ => format!("{}ms", info.timeout_ms),
                }
            }
            "counter" => {
                let name = rest.split('=').next().unwrap_or_default();
                let names = TcpCounters::NAMES.iter();
                let place = names.clone().position(|known| *known == name);
                let Some(place) = place else {
                    return Some(Err(format!("there is no counter `{name}`")));
                };
                format!("{name}={}", self.counters.values()[place])
            }
            _ => return None,
        };
        Some(if is == rest {
            Ok(())
        } else {
            Err(format!("but it is {is}"))
        })
    }

    fn check_invariants(&self) {
        if let Some(connection) = &self.connection {
            if connection.is_closed() {
                assert_eq!(self.recovery.in_use(), 0, "{}", self.story());
            }
        }
    }
}

fn yes(is: bool) -> Result<(), String> {
    if is {
        Ok(())
    } else {
        Err("but it is not so".to_owned())
    }
}

fn state_name(state: TcpState) -> &'static str {
    match state {
        TcpState::SynSent => "SYN-SENT",
        TcpState::SynReceived => "SYN-RECEIVED",
        TcpState::Established => "ESTABLISHED",
        TcpState::CloseWait => "CLOSE-WAIT",
        TcpState::FinWait1 => "FIN-WAIT-1",
        TcpState::FinWait2 => "FIN-WAIT-2",
        TcpState::Closing => "CLOSING",
        TcpState::LastAck => "LAST-ACK",
        TcpState::TimeWait => "TIME-WAIT",
        TcpState::Closed => "CLOSED",
    }
}

#[test]
fn a_script_that_does_not_hold_says_where_and_what_was_sent() {
    let trouble = try_run("established\nwrite 100\n> P. 1:201(200) ack 1\n");
    let trouble = trouble.expect_err("it writes 100");
    assert!(
        trouble.starts_with("line 3: > P. 1:201(200) ack 1\n"),
        "{trouble}"
    );
    assert!(
        trouble.contains("but at 0 ms: > P. 1:101(100) ack 1 win 32768"),
        "{trouble}"
    );
    let cases = [
        (
            "established\nwrite 100",
            "at the end: nothing should have left",
        ),
        ("established\nwrite 100\nnone", "line 3"),
        (
            "established\nwrite 100\n> P. 1:101(100) ack 1\n+1s > P. 1:101(100)",
            "at 200 ms",
        ),
        ("established\n> . 1:1(0)", "nothing left"),
        ("connect\n> S 1:0(5)", "is not 5 bytes long"),
        ("set colour=1", "`colour` cannot be set"),
        ("dance", "`dance` is no command"),
        ("connect\n> S 0:0(0)\nstate CLOSED", "but it is SYN-SENT"),
        ("counter tcps=1", "there is no counter `tcps`"),
    ];
    for (script, expected) in cases {
        let trouble = try_run(script).expect_err(script);
        assert!(trouble.contains(expected), "{script}: {trouble}");
    }
}
