//! A network namespace of our own, without a name, so that it is gone when we are.

use std::fs::{self, File};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace; it lives as long as something in it.
#[derive(Clone, Debug)]
pub(crate) struct Namespace(Arc<File>);

impl Namespace {
    pub(crate) fn make() -> Result<Namespace, String> {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|error| format!("no network namespace: {error}"))?;
            File::open("/proc/thread-self/ns/net").map_err(|error| error.to_string())
        });
        let made = made.join().expect("the thread panics nowhere")?;
        Ok(Namespace(Arc::new(made)))
    }

    /// Does something inside. Sockets and devices that it makes stay there.
    pub(crate) fn within<R: Send>(&self, act: impl FnOnce() -> R + Send) -> R {
        let inside = || {
            setns(&self.0, CloneFlags::CLONE_NEWNET).expect("the namespace is there, and ours");
            act()
        };
        thread::scope(|scope| match scope.spawn(inside).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// Runs `ip` inside.
    pub(crate) fn ip(&self, arguments: &str) {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let done = self.within(|| Command::new("ip").args(&words).output());
        let done = done.expect("`ip` is there, or the test had been skipped");
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ip {arguments}: {error}");
    }

    /// Writes a setting below /proc/sys/net.
    pub(crate) fn set(&self, path: &str, value: &str) {
        let path = format!("/proc/sys/net/{path}");
        let written = self.within(|| fs::write(&path, value));
        written.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// What a file says inside.
    pub(crate) fn read(&self, path: &str) -> String {
        let text = self.within(|| fs::read_to_string(path));
        text.unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}
