//! The thread that has the sessions, and the way to it.

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use nix::sys::eventfd::{EfdFlags, EventFd};

use super::driver::RouteDriver;
use super::kernel_sockets::{KernelSockets, Ready};
use super::request::{RouteRequest, RouteResult};

/// Requests that are done before sockets have their turn.
const REQUESTS_PER_TURN: usize = 64;

/// The way to the thread, which is started by the first request and ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RouteService {
    seed: u64,
    thread: Mutex<Option<RouteThread>>,
}

impl RouteService {
    /// No thread yet. The seed spreads timers of sessions.
    pub(crate) fn new(seed: u64) -> RouteService {
        RouteService {
            seed,
            thread: Mutex::new(None),
        }
    }

    /// Has the thread do something, and waits until it is done.
    pub(crate) fn ask(&self, request: RouteRequest) -> RouteResult {
        let answer = {
            let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            if thread.is_none() {
                let started = RouteThread::start(self.seed);
                let refused = |error| format!("the system refused a thread for BGP: {error}");
                *thread = Some(started.map_err(refused)?);
            }
            let thread = thread.as_ref().expect("it was just started");
            thread.send(request)
        };
        let gone = |_| "the thread for BGP broke down, see the server's log".to_owned();
        answer.recv().map_err(gone)?
    }
}

/// A request, and where its answer goes.
type Asked = (RouteRequest, Sender<RouteResult>);

/// The thread.
#[derive(Debug)]
struct RouteThread {
    /// None when it shall end.
    requests: Option<Sender<Asked>>,
    waker: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl RouteThread {
    fn start(seed: u64) -> io::Result<RouteThread> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let waker = Arc::new(EventFd::from_flags(flags)?);
        let (requests, asked) = channel();
        let driver = RouteDriver::new(KernelSockets::new(&waker)?, seed);
        let own = Arc::clone(&waker);
        let thread = thread::Builder::new().name("BGP".to_owned());
        let thread = thread.spawn(move || run(driver, &asked, &own))?;
        Ok(RouteThread {
            requests: Some(requests),
            waker,
            thread: Some(thread),
        })
    }

    fn send(&self, request: RouteRequest) -> Receiver<RouteResult> {
        let (to, answer) = channel();
        if let Some(requests) = &self.requests {
            // Whoever waits for the answer sees that the thread is gone.
            let _ = requests.send((request, to));
        }
        self.wake();
        answer
    }

    fn wake(&self) {
        // It can only fail when it is readable already.
        let _ = self.waker.write(1);
    }
}

impl Drop for RouteThread {
    fn drop(&mut self) {
        self.requests = None;
        self.wake();
        if let Some(thread) = self.thread.take() {
            if thread.join().is_err() {
                tracing::error!("the thread for BGP had panicked; see above");
            }
        }
    }
}

fn run(mut driver: RouteDriver<KernelSockets>, asked: &Receiver<Asked>, waker: &EventFd) {
    let began = Instant::now();
    let now = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut ready = Ready::default();
    loop {
        let timeout_ms = driver.poll_timeout().map(|due_ns| {
            let left_ns = due_ns.saturating_sub(now());
            u32::try_from(left_ns.div_ceil(1_000_000)).unwrap_or(u32::MAX)
        });
        driver.sockets.wait(timeout_ms, &mut ready);
        if ready.is_woken {
            let _ = waker.read();
        }
        for event in ready.sockets.drain(..) {
            driver.handle_ready(event, now());
        }
        driver.handle_timeout(now());
        for number in 0..=REQUESTS_PER_TURN {
            if number == REQUESTS_PER_TURN {
                // The rest comes in the next turn.
                let _ = waker.write(1);
                break;
            }
            match asked.try_recv() {
                Ok((request, to)) => {
                    let answer = driver.handle_request(request, now());
                    // Whoever asked may have given up.
                    let _ = to.send(answer);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    driver.end(now());
                    return;
                }
            }
        }
    }
}
