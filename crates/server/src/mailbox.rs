//! Rings between control and the data threads, one each way for each thread, and what wakes them.
//!
//! Nothing is lost: control keeps what a full ring does not take and offers it again
//! ([`ControlEnd::flush`]); a worker keeps its events in the engine until there is room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::Thread;

use allosaur_engine::Event;
use allosaur_engine::stream::CoreProgram;
use nix::sys::eventfd::{EfdFlags, EventFd};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::worker_command::{FlowReport, WorkerCommand};

/// Commands that may be under way to one thread.
const COMMANDS: usize = 256;
/// Events that may be under way from one thread.
const EVENTS: usize = 1024;

/// What a data thread tells control.
#[derive(Debug)]
pub enum Report {
    /// Something happened.
    Event(Event),
    /// A program that the engine is done with, to be freed here.
    Retired(Box<CoreProgram>),
    /// Something about flows; only in stateful mode.
    Flows(FlowReport),
}

/// Wakes a thread that waits for files: one that becomes readable.
#[derive(Clone, Debug)]
pub struct Notify(Arc<EventFd>);

impl Notify {
    /// An eventfd that is not readable yet.
    pub fn new() -> std::io::Result<Notify> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(Notify(Arc::new(EventFd::from_flags(flags)?)))
    }

    /// Wakes the thread, now or at its next wait.
    pub fn notify(&self) {
        // It can only fail when 2⁶⁴ - 2 rings were not heard, and then it rings already.
        let _ = self.0.write(1);
    }

    /// Makes it silent again.
    pub fn drain(&self) {
        // Fails when it did not ring, which is as well.
        let _ = self.0.read();
    }

    /// The file to wait for.
    pub fn file(&self) -> &EventFd {
        &self.0
    }
}

/// Wakes one thread when it sleeps, and costs next to nothing when it does not.
///
/// Who wakes it puts something where it looks first. The thread says that it [lies
/// down](Waker::park), then looks once more, and sleeps until the bell rings.
#[derive(Clone, Debug)]
pub struct Waker {
    notify: Notify,
    asleep: Arc<AtomicBool>,
}

impl Waker {
    /// The alarm of a thread that is awake.
    pub fn new() -> std::io::Result<Waker> {
        Ok(Waker {
            notify: Notify::new()?,
            asleep: Arc::default(),
        })
    }

    /// Wakes the thread if it sleeps, or is about to.
    #[inline]
    pub fn wake(&self) {
        // Orders what was put there before the look at the thread, as `park` does there.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.notify.notify();
        }
    }

    /// The thread will sleep. It looks for something to do once more after this.
    pub fn park(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The thread is awake again.
    pub fn unpark(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// What the thread waits for.
    pub fn notify(&self) -> &Notify {
        &self.notify
    }
}

/// The way to wake a data thread.
#[derive(Debug)]
pub enum ThreadWaker {
    /// One that parks.
    Parked(Thread),
    /// One that waits for files.
    Waiting(Waker),
}

impl ThreadWaker {
    fn wake(&self) {
        match self {
            ThreadWaker::Parked(thread) => thread.unpark(),
            ThreadWaker::Waiting(waker) => waker.wake(),
        }
    }
}

/// The end of control, of one data thread.
#[derive(Debug)]
pub struct ControlEnd {
    commands: Producer<WorkerCommand>,
    waiting: VecDeque<WorkerCommand>,
    reports: Consumer<Report>,
    thread: Option<ThreadWaker>,
}

/// The end of the data thread. When it is gone, [`ControlEnd::is_closed`] says so; when control's
/// is gone, [`WorkerEnd::is_closed`] does.
#[derive(Debug)]
pub struct WorkerEnd {
    commands: Consumer<WorkerCommand>,
    reports: Producer<Report>,
    control_notify: Notify,
}

/// The two ends of the mail of one data thread.
pub fn mailbox(control_notify: &Notify) -> (ControlEnd, WorkerEnd) {
    let (commands, commands_out) = RingBuffer::new(COMMANDS);
    let (reports_in, reports) = RingBuffer::new(EVENTS);
    let control = ControlEnd {
        commands,
        waiting: VecDeque::new(),
        reports,
        thread: None,
    };
    let control_notify = control_notify.clone();
    let worker = WorkerEnd {
        commands: commands_out,
        reports: reports_in,
        control_notify,
    };
    (control, worker)
}

impl ControlEnd {
    /// Tells whom to wake when there is mail.
    pub fn wake_with(&mut self, thread: ThreadWaker) {
        self.thread = Some(thread);
    }

    /// Sends an order; it waits here while the ring is full.
    pub fn send(&mut self, order: impl Into<WorkerCommand>) {
        self.waiting.push_back(order.into());
        self.flush();
    }

    /// Offers what waits to the ring again, and wakes the thread. True when nothing waits.
    pub fn flush(&mut self) -> bool {
        let mut sent = false;
        while !self.commands.is_full() {
            let Some(order) = self.waiting.pop_front() else {
                break;
            };
            // There is room: nobody else puts anything in.
            sent |= self.commands.push(order).is_ok();
        }
        if let Some(thread) = self.thread.as_ref().filter(|_| sent) {
            thread.wake();
        }
        self.waiting.is_empty()
    }

    /// The next report of the thread.
    pub fn receive(&mut self) -> Option<Report> {
        self.reports.pop().ok()
    }

    /// Whether the thread has ended.
    pub fn is_closed(&self) -> bool {
        self.reports.is_abandoned()
    }
}

impl WorkerEnd {
    /// The next order.
    #[inline]
    pub fn receive(&mut self) -> Option<WorkerCommand> {
        self.commands.pop().ok()
    }

    /// Whether there are orders.
    pub fn has_orders(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Room for another report.
    pub fn has_room(&self) -> bool {
        !self.reports.is_full()
    }

    /// Sends a report and wakes control. Call it only when there is [room](Self::has_room).
    pub fn send(&mut self, report: Report) {
        self.reports
            .push(report)
            .expect("the caller has asked for room");
        self.control_notify.notify();
    }

    /// Whether control has ended: then the thread does too.
    pub fn is_closed(&self) -> bool {
        self.commands.is_abandoned()
    }
}

#[cfg(test)]
mod tests {
    use allosaur_engine::Command;
    use allosaur_engine::stream::ProfileKey;

    use super::*;

    fn stop(n: u32) -> Command {
        Command::StopProfile {
            port: 0,
            profile: ProfileKey(n),
        }
    }

    #[test]
    fn more_commands_than_the_ring_holds_arrive_in_order() {
        let control_notify = Notify::new().expect("an eventfd");
        let (mut control, mut worker) = mailbox(&control_notify);
        let many = 3 * COMMANDS as u32;
        for n in 0..many {
            control.send(stop(n));
        }
        assert!(!control.flush());
        for n in 0..many {
            control.flush();
            match worker.receive() {
                Some(WorkerCommand::Streams(Command::StopProfile { profile, .. })) => {
                    assert_eq!(profile, ProfileKey(n));
                }
                other => panic!("command {n} is {other:?}"),
            }
        }
        assert!(control.flush());
    }

    #[test]
    fn each_end_sees_that_the_other_is_gone() {
        let control_notify = Notify::new().expect("an eventfd");
        let (control, worker) = mailbox(&control_notify);
        assert!(!control.is_closed() && !worker.is_closed());
        drop(control);
        assert!(worker.is_closed());
        let (control, worker) = mailbox(&control_notify);
        drop(worker);
        assert!(control.is_closed());
    }

    #[test]
    fn a_full_ring_of_reports_says_so_and_the_doorbell_can_be_silenced() {
        let control_notify = Notify::new().expect("an eventfd");
        let (mut control, mut worker) = mailbox(&control_notify);
        let event = Event::ProfileDone {
            port: 0,
            profile: ProfileKey(0),
            at: 0,
        };
        while worker.has_room() {
            worker.send(Report::Event(event));
        }
        control_notify.drain();
        control_notify.drain();
        let received = std::iter::from_fn(|| control.receive()).count();
        assert_eq!(received, EVENTS);
        assert!(worker.has_room());
    }
}
