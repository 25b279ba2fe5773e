//! Two ends and the link between them, at work in real time.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use allosaur_engine::tcp::{TcpCounters, Tunables};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::host::{Host, Kernel, Place};
use crate::link::{Faults, Link};
use crate::ours::Ours;
use crate::script::{Report, Step};
use crate::socket;
use crate::watch::{Seen, Watch};

/// Who is at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Kernel,
    Ours,
}

/// Two scripts, and what is between and below them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) client: Vec<Step>,
    pub(crate) server: Vec<Step>,
    pub(crate) faults: Faults,
    pub(crate) kernel: Kernel,
    pub(crate) ours: Tunables,
    pub(crate) ipv6: bool,
    /// Nobody listens: both connect, at the same time.
    pub(crate) both_connect: bool,
    /// Nobody listens, and only the client connects.
    pub(crate) nobody_listens: bool,
    pub(crate) seed: u64,
}

/// What came of it: of the client, of the server.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) reports: [Report; 2],
    pub(crate) seen: [Seen; 2],
    /// What our end counted.
    pub(crate) counters: TcpCounters,
    /// The longest that the link stood still because this machine had no time for it.
    pub(crate) stalled: Duration,
}

/// All of it must be over by then.
const PATIENCE: Duration = Duration::from_secs(90);
/// Who sleeps longer may miss that an application is done.
const SLEEP_MS: u16 = 2;

enum End {
    Kernel {
        host: Host,
        application: Option<JoinHandle<Report>>,
        report: Option<Report>,
    },
    Ours(Box<Ours>),
}

impl End {
    fn make(case: &Case, place: Place, who: Who) -> End {
        let script = case.script(place);
        match who {
            Who::Ours => {
                let ours = Ours::new(place, case.ipv6, case.ours, script);
                End::Ours(Box::new(ours))
            }
            Who::Kernel => End::Kernel {
                host: Host::make(place, &case.kernel).expect("it could be made a moment ago"),
                application: None,
                report: None,
            },
        }
    }

    /// Its application begins.
    fn begin(&mut self, case: &Case, place: Place) {
        let connects = place == Place::Client || case.both_connect;
        let (own, other) = (place.address(case.ipv6), place.other().address(case.ipv6));
        match self {
            End::Ours(ours) if connects => ours.connect(),
            End::Ours(ours) if case.nobody_listens => ours.refuse(),
            End::Ours(_) => {}
            End::Kernel { report, .. } if !connects && case.nobody_listens => {
                *report = Some(Report::default());
            }
            End::Kernel {
                host, application, ..
            } => {
                let (script, kernel) = (case.script(place).to_vec(), case.kernel.clone());
                let namespace = host.namespace.clone();
                let listener: Option<TcpListener> =
                    (!connects).then(|| namespace.within(|| socket::listen(own, &kernel)));
                *application = Some(thread::spawn(move || match listener {
                    Some(listener) => socket::serve(listener, &script),
                    None => namespace.within(|| socket::connect(own, other, &kernel, &script)),
                }));
            }
        }
    }

    /// Frames that it sent.
    fn take_sent(&mut self, now: Instant, mut each: impl FnMut(Vec<u8>)) {
        match self {
            End::Ours(ours) => {
                ours.work(now);
                ours.leaving.drain(..).for_each(each);
            }
            End::Kernel { host, .. } => {
                let mut bytes = vec![0; 1 << 16];
                while let Some(length) = host.tap.receive(&mut bytes).expect("the tap is up") {
                    each(bytes[..length].to_vec());
                }
            }
        }
    }

    fn deliver(&mut self, frame: &[u8]) {
        match self {
            End::Ours(ours) => ours.handle_frame(frame),
            End::Kernel { host, .. } => host.tap.send(frame).expect("the tap is up"),
        }
    }

    /// What its application saw, once that is done.
    fn report(&mut self) -> Option<Report> {
        match self {
            End::Ours(ours) => ours.is_done().then(|| ours.report()),
            End::Kernel {
                application,
                report,
                ..
            } => {
                if let Some(done) = application.take_if(|thread| thread.is_finished()) {
                    *report = Some(done.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
                }
                *report
            }
        }
    }

    /// What of its connection is not over.
    fn left(&self) -> Vec<String> {
        match self {
            End::Ours(ours) if ours.is_over() => Vec::new(),
            End::Ours(_) => vec!["ours".to_owned()],
            End::Kernel { host, .. } => host.connections(),
        }
    }
}

impl Case {
    /// A case on a good link, with all as usual.
    pub(crate) fn new(client: &[Step], server: &[Step]) -> Case {
        Case {
            client: client.to_vec(),
            server: server.to_vec(),
            faults: Faults::NONE,
            kernel: Kernel::default(),
            ours: Tunables::default(),
            ipv6: false,
            both_connect: false,
            nobody_listens: false,
            seed: 1,
        }
    }

    fn script(&self, place: Place) -> &[Step] {
        match place {
            Place::Client => &self.client,
            Place::Server => &self.server,
        }
    }

    /// Runs the scripts between these two.
    pub(crate) fn run(&self, client: Who, server: Who) -> Outcome {
        let places = [Place::Client, Place::Server];
        let mut ends = [
            End::make(self, Place::Client, client),
            End::make(self, Place::Server, server),
        ];
        // Who listens is there first.
        for place in [Place::Server, Place::Client] {
            ends[place as usize].begin(self, place);
        }
        let mut link = Link::new(self.faults, self.seed);
        let mut watches = [Watch::default(), Watch::default()];
        let begun = Instant::now();
        let (mut stalled, mut last) = (Duration::ZERO, begun);
        let mut checked = begun;
        let reports = loop {
            let now = Instant::now();
            stalled = stalled.max(now - last);
            last = now;
            for place in places {
                ends[place as usize].take_sent(now, |frame| {
                    watches[place as usize].take(&frame);
                    link.send(now, place.other(), frame);
                });
            }
            // Also when frames go to and fro for ever.
            assert!(
                now - begun < PATIENCE,
                "it hangs: {}",
                self.state(&mut ends)
            );
            let mut has_moved = false;
            while let Some((to, frame)) = link.pop(now) {
                ends[to as usize].deliver(&frame);
                has_moved = true;
            }
            if has_moved {
                continue;
            }
            let [client, server] = &mut ends;
            let reports = (client.report(), server.report());
            if let ((Some(client), Some(server)), true) = (reports, link.next_due().is_none()) {
                let pause = Duration::from_millis(5);
                if now - checked > pause && ends.iter().all(|end| end.left().is_empty()) {
                    break [client, server];
                }
                checked = if now - checked > pause { now } else { checked };
            }
            sleep(now, &ends, &link);
        };
        let counters = ends.iter().find_map(|end| match end {
            End::Ours(ours) => Some(ours.counters.clone()),
            End::Kernel { .. } => None,
        });
        Outcome {
            reports,
            seen: watches.map(|watch| watch.seen),
            counters: counters.unwrap_or_default(),
            stalled,
        }
    }

    fn state(&self, ends: &mut [End; 2]) -> String {
        let states = ends.iter_mut().map(|end| (end.report(), end.left()));
        format!("{:?} in {self:?}", states.collect::<Vec<_>>())
    }
}

/// Sleeps until something is due, or a tap has a frame.
fn sleep(now: Instant, ends: &[End; 2], link: &Link) {
    let mut due = link.next_due();
    let mut taps = Vec::new();
    for end in ends {
        match end {
            End::Kernel { host, .. } => taps.push(PollFd::new(host.tap.as_fd(), PollFlags::POLLIN)),
            End::Ours(ours) => due = due.into_iter().chain(ours.next_due(now)).min(),
        }
    }
    let left = due.map(|due| due.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return;
    }
    let whole_ms = left.map_or(SLEEP_MS, |left| {
        left.as_millis().min(u128::from(SLEEP_MS)) as u16
    });
    if whole_ms == 0 {
        thread::sleep(Duration::from_micros(50));
        return;
    }
    poll(&mut taps, PollTimeout::from(whole_ms)).expect("the taps are open");
}
