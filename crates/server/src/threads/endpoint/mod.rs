//! Endpoints: where the packets of captures go, and the sockets that ports are joined to.

mod capture;
mod form;
mod nodes;
mod wire;

pub use capture::open_capture;
pub use nodes::open_node_socket;
pub use wire::{open_emu_channel, open_wire};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::threads::waker::Notify;

/// A thread that ends when its owner is dropped.
#[derive(Debug)]
struct Helper {
    ended: Arc<AtomicBool>,
    notify: Notify,
    thread: Option<JoinHandle<()>>,
}

/// What a helper thread looks at.
#[derive(Debug)]
struct HelperControl {
    ended: Arc<AtomicBool>,
    notify: Notify,
}

impl Helper {
    fn start(
        name: &str,
        body: impl FnOnce(HelperControl) + Send + 'static,
    ) -> Result<Helper, String> {
        let refused = |error: std::io::Error| format!("the system refused a thread: {error}");
        let notify = Notify::new().map_err(refused)?;
        let ended = Arc::new(AtomicBool::new(false));
        let orders = HelperControl {
            ended: Arc::clone(&ended),
            notify: notify.clone(),
        };
        let builder = std::thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn(move || body(orders)).map_err(refused)?;
        Ok(Helper {
            ended,
            notify,
            thread: Some(thread),
        })
    }

    /// Wakes the thread, now or at its next wait.
    fn wake(&self) {
        self.notify.notify();
    }
}

impl HelperControl {
    fn are_to_end(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Takes note of all calls so far.
    fn heard(&self) {
        self.notify.drain();
    }
}

impl Drop for Helper {
    /// The thread ends by itself, after what it has still to do: who drops this does not wait.
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
        drop(self.thread.take());
    }
}
