//! What the kernel says of a thread's time: how long it ran, and how long it waited for a CPU. A machine
//! that is short of time looks like a thread that stands still.

use std::cell::RefCell;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// More than so much of the machine's time that its host took is worth a word.
const STOLEN_TOLD: f64 = 0.02;

/// Looks at a thread of this process.
#[derive(Clone, Debug, Default)]
pub(super) struct RunTime {
    /// Its number; 0 until it has begun.
    thread: Arc<AtomicI32>,
    /// What was found when something began to wait for it.
    before: RefCell<Option<Sample>>,
}

/// What is known at one time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    ran: Duration,
    waited: Duration,
    /// Time of all CPUs, and what the machine's host took of it, in ticks.
    machine: Option<(u64, u64)>,
}

impl RunTime {
    /// For the thread that is looked at: it calls this once.
    pub(super) fn thread_noter(&self) -> impl FnOnce() + Send + 'static {
        let number = Arc::clone(&self.thread);
        move || number.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed)
    }

    /// Remembers how it is now, if something waits for the thread and did not before.
    pub(super) fn note(&self, is_waited_for: bool) {
        let mut before = self.before.borrow_mut();
        match (is_waited_for, before.is_some()) {
            (true, false) => *before = self.sample(),
            (false, true) => *before = None,
            _ => {}
        }
    }

    /// How the thread spent its time since something began to wait for it.
    pub(super) fn in_words(&self) -> Option<String> {
        let before = (*self.before.borrow())?;
        Some(in_words(&before, &self.sample()?))
    }

    fn sample(&self) -> Option<Sample> {
        let thread = self.thread.load(Ordering::Relaxed);
        let file = format!("/proc/self/task/{thread}/schedstat");
        let (ran, waited) = parse_schedstat(&fs::read_to_string(file).ok()?)?;
        let machine = fs::read_to_string("/proc/stat").ok();
        Some(Sample {
            at: Instant::now(),
            ran,
            waited,
            machine: machine.as_deref().and_then(parse_stat),
        })
    }
}

/// Time on a CPU and time in a run queue, of `schedstat` in proc(5).
fn parse_schedstat(text: &str) -> Option<(Duration, Duration)> {
    let mut words = text.split_whitespace();
    let mut next = || words.next()?.parse().ok().map(Duration::from_nanos);
    Some((next()?, next()?))
}

/// All ticks of all CPUs, and those of the eighth column, `steal`, of `/proc/stat` in proc(5).
fn parse_stat(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    // What guests ran is in the first two, too.
    let ticks = line.split_whitespace().take(8);
    let ticks: Vec<u64> = ticks.map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((ticks.iter().sum(), *ticks.get(7)?))
}

fn in_words(before: &Sample, after: &Sample) -> String {
    let span = after.at.saturating_duration_since(before.at);
    let ran = after.ran.saturating_sub(before.ran);
    let waited = after.waited.saturating_sub(before.waited);
    let stolen = stolen(before, after);
    let seconds = |time: Duration| time.as_secs_f64();
    let mut text = format!(
        "of the last {:.1} s it ran {:.1} s and waited {:.1} s for a CPU",
        seconds(span),
        seconds(ran),
        seconds(waited)
    );
    if let Some(stolen) = stolen.filter(|stolen| *stolen > STOLEN_TOLD) {
        let percent = 100.0 * stolen;
        text += &format!(", while the machine's host took {percent:.0} % of its CPUs (steal)");
    }
    let is_short = waited > span / 4 || stolen.is_some_and(|stolen| stolen > 0.25);
    text += match (is_short, ran > span / 2) {
        (true, _) => {
            ". The machine is short of CPUs: end what else runs on it, or give the server CPUs of its own"
        }
        (false, true) => ". It has too much to do: try again with less traffic, or fewer captures",
        (false, false) => ". See the server's log",
    };
    text
}

fn stolen(before: &Sample, after: &Sample) -> Option<f64> {
    let ((total, stolen), (total_after, stolen_after)) = (before.machine?, after.machine?);
    let ticks = total_after.saturating_sub(total);
    (ticks > 0).then(|| stolen_after.saturating_sub(stolen) as f64 / ticks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(ran_ms: u64, waited_ms: u64, stolen: u64) -> String {
        let sample = |at, ran_ms, waited_ms, machine| Sample {
            at,
            ran: Duration::from_millis(ran_ms),
            waited: Duration::from_millis(waited_ms),
            machine: Some(machine),
        };
        let begun = Instant::now();
        let ended = begun + Duration::from_secs(2);
        let before = sample(begun, 1000, 500, (1000, 10));
        let after = sample(ended, 1000 + ran_ms, 500 + waited_ms, (1400, 10 + stolen));
        in_words(&before, &after)
    }

    #[test]
    fn a_slow_machine_a_busy_thread_and_one_that_stands_are_told_apart() {
        let slow = words(100, 1900, 0);
        assert!(
            slow.starts_with(
                "of the last 2.0 s it ran 0.1 s and waited 1.9 s for a CPU. The machine"
            )
        );
        let stolen = words(100, 0, 200);
        assert!(
            stolen.contains("took 50 % of its CPUs (steal). The machine is short"),
            "{stolen}"
        );
        assert!(words(1900, 100, 4).contains("too much to do"));
        assert!(words(0, 0, 0).contains("the server's log"));
    }

    #[test]
    fn the_kernel_s_files_are_read() {
        assert_eq!(
            parse_schedstat("5000000 7000000 12\n"),
            Some((Duration::from_millis(5), Duration::from_millis(7)))
        );
        let stat = "cpu  10 0 20 70 0 0 0 7 3 0\ncpu0 1 2 3\n";
        assert_eq!(parse_stat(stat), Some((107, 7)));
        assert_eq!(parse_stat("intr 1"), None);
        let own = RunTime::default();
        own.thread_noter()();
        own.note(true);
        let said = own.in_words().expect("the kernel has schedstat");
        assert!(said.contains("for a CPU"), "{said}");
        own.note(false);
        assert_eq!(own.in_words(), None);
    }
}
