//! The table of counters that a server writes to its standard output every second, as TRex does.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::counters::{Counters, PortCounters, Snapshot};

/// How often it is written.
const PERIOD: Duration = Duration::from_secs(1);
/// Width of a column.
const WIDTH: usize = 15;

/// A counter of the port of a number.
type Counter<'a> = &'a dyn Fn(usize, &PortCounters) -> u64;

/// Writes the table while it lives.
#[derive(Debug)]
pub(super) struct Writing {
    /// Closed when this is dropped, which wakes the thread; it is not waited for, because its
    /// output may stand still.
    _open: Sender<()>,
}

/// Starts to write. On some ports the losses on arrival are errors.
pub(super) fn start(counters: &Counters, losses_are_errors: &[bool]) -> Writing {
    let (counters, losses_are_errors) = (counters.clone(), losses_are_errors.to_vec());
    let (open, closed) = channel::<()>();
    let body = move || {
        let start = Instant::now();
        let (mut before, mut now) = (Snapshot::default(), Snapshot::default());
        counters.read(&mut before);
        let mut last = start;
        while closed.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            counters.read(&mut now);
            let seconds = last.elapsed().as_secs_f64();
            last = Instant::now();
            let uptime_s = start.elapsed().as_secs_f64();
            let text = text(&before, &now, &losses_are_errors, seconds, uptime_s);
            let mut output = std::io::stdout();
            if output
                .write_all(text.as_bytes())
                .and_then(|()| output.flush())
                .is_err()
            {
                return;
            }
            std::mem::swap(&mut before, &mut now);
        }
    };
    let spawned = std::thread::Builder::new()
        .name("table".to_owned())
        .spawn(body);
    if let Err(error) = spawned {
        tracing::warn!("there is no table of counters: the system refused a thread: {error}");
    }
    Writing { _open: open }
}

/// The table: what was counted until `now`, and rates over the `seconds` since `before`.
fn text(
    before: &Snapshot,
    now: &Snapshot,
    losses_are_errors: &[bool],
    seconds: f64,
    uptime_s: f64,
) -> String {
    let mut text = String::from("-Per port stats table \n");
    let numbers = (0..now.ports.len()).map(|port| port.to_string());
    row(&mut text, "ports", numbers);
    let dashes = 11 + (WIDTH + 3) * now.ports.len();
    let _ = writeln!(text, " {}", "-".repeat(dashes));
    counts(&mut text, now, losses_are_errors);
    let rate = |count: fn(&PortCounters) -> u64| {
        let nothing = PortCounters::default();
        let pairs = now.ports.iter().enumerate();
        let rates = pairs.map(move |(n, port)| {
            let before = before.ports.get(n).unwrap_or(&nothing);
            count(port).saturating_sub(count(before)) as f64 / seconds.max(1e-9)
        });
        rates.collect::<Vec<f64>>()
    };
    let tx_bps: Vec<f64> = rate(|port| port.transmit.sent.bytes * 8);
    row(
        &mut text,
        "Tx Bw",
        tx_bps.iter().map(|&bps| scaled(bps, "bps")),
    );
    let _ = writeln!(text, "\n-Global stats enabled ");
    for (name, value) in [
        (
            "Cpu Utilization",
            format!("{:.1}  %", busy_percent(before, now)),
        ),
        ("Total-Tx", scaled(tx_bps.iter().sum(), "bps")),
        (
            "Total-Rx",
            scaled(rate(|port| port.receive.bytes * 8).iter().sum(), "bps"),
        ),
        (
            "Total-PPS",
            scaled(rate(|port| port.transmit.sent.packets).iter().sum(), "pps"),
        ),
        ("current time", format!("{uptime_s:.1} sec")),
    ] {
        let _ = writeln!(text, " {name:<15} : {value}");
    }
    text + "\n"
}

/// The rows of counters.
fn counts(text: &mut String, now: &Snapshot, losses_are_errors: &[bool]) {
    let losses = |number: usize, port: &PortCounters| match losses_are_errors.get(number) {
        Some(true) => port.receive_lost_packets,
        _ => 0,
    };
    let rows: [(&str, Counter<'_>); 9] = [
        ("opackets", &|_, port| port.transmit.sent.packets),
        ("obytes", &|_, port| port.transmit.sent.bytes),
        ("ipackets", &|_, port| port.receive.packets),
        ("ibytes", &|_, port| port.receive.bytes),
        ("ierrors", &losses),
        ("oerrors", &|_, port| port.transmit.lost_packets),
        ("rx lost", &|_, port| port.receive_lost_packets),
        ("missed", &|_, port| port.transmit.missed_packets),
        ("queue full", &|_, port| port.transmit.queue_full),
    ];
    for (name, counter) in rows {
        let ports = now.ports.iter().enumerate();
        row(
            text,
            name,
            ports.map(|(number, port)| counter(number, port).to_string()),
        );
    }
}

fn row(text: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let _ = write!(text, " {name:>10} ");
    for cell in cells {
        let _ = write!(text, "| {cell:>WIDTH$} ");
    }
    text.push('\n');
}

/// A number with the prefix that suits it.
fn scaled(value: f64, unit: &str) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "K")];
    let fitting = prefixes.into_iter().find(|(scale, _)| value >= *scale);
    let (scale, prefix) = fitting.unwrap_or((1.0, " "));
    format!("{:.2} {prefix}{unit}", value / scale)
}

/// How busy the data threads were.
fn busy_percent(before: &Snapshot, now: &Snapshot) -> f64 {
    let (mut busy, mut total) = (0, 0);
    for (core, now) in now.cores.iter().enumerate() {
        let before = before.cores.get(core).copied().unwrap_or_default();
        busy += now.busy_ns.saturating_sub(before.busy_ns);
        total += now.total_ns.saturating_sub(before.total_ns);
    }
    100.0 * busy as f64 / total.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_counters_and_rates() {
        let mut before = Snapshot::default();
        before.ports.resize(3, PortCounters::default());
        let mut now = before.clone();
        now.ports[1].transmit.sent.packets = 2_000;
        now.ports[1].transmit.sent.bytes = 128_000;
        now.ports[2].receive.packets = 1_999;
        now.ports[0].receive_lost_packets = 5;
        now.ports[0].transmit.lost_packets = 7;
        now.ports[2].receive_lost_packets = 3;
        let text = text(&before, &now, &[false, true, true], 2.0, 7.25);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "-Per port stats table ");
        let cells = |name: &str| {
            let line = lines
                .iter()
                .find(|line| line.trim_start().starts_with(name));
            let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
            line.split('|').skip(1).map(str::trim).collect::<Vec<_>>()
        };
        assert_eq!(cells("ports"), ["0", "1", "2"]);
        assert_eq!(cells("opackets"), ["0", "2000", "0"]);
        assert_eq!(cells("ipackets"), ["0", "0", "1999"]);
        assert_eq!(
            cells("ierrors"),
            ["0", "0", "3"],
            "what a link was told to lose is no error"
        );
        assert_eq!(cells("oerrors"), ["7", "0", "0"]);
        assert_eq!(cells("rx lost"), ["5", "0", "3"]);
        assert_eq!(cells("Tx Bw"), ["0.00  bps", "512.00 Kbps", "0.00  bps"]);
        assert!(text.contains("Total-PPS       : 1.00 Kpps"), "{text}");
        assert!(text.contains("7.2 sec"), "{text}");
    }
}
