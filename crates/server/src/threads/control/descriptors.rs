//! How many files the server may have open: with too few, sockets and threads fail one after the other,
//! and none says why.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::config::Settings;

/// What a server has open without ports and threads, and a few clients.
const OWN: u64 = 64;
/// Of a port, with its queues.
const PER_PORT: u64 = 8;
/// Of a thread: what wakes it, and what it wakes others by.
const PER_THREAD: u64 = 4;
/// As many as it takes when it may.
const WANTED: u64 = 1 << 16;

/// Raises the limit as far as it may be, and says what is wrong if that is too low.
pub(super) fn check_and_raise(settings: &Settings) -> Result<(), String> {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return Ok(());
    };
    let wanted = hard.min(WANTED).max(soft);
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => wanted,
        Err(_) => soft,
    };
    check(settings, limit)
}

fn check(settings: &Settings, limit: u64) -> Result<(), String> {
    let threads = settings.cores() as u64 + u64::from(settings.receive_threads);
    let needed = OWN + PER_PORT * settings.ports.len() as u64 + PER_THREAD * threads;
    match limit >= needed {
        true => Ok(()),
        false => Err(format!(
            "a server of these ports and threads needs {needed} open files, and {limit} are allowed \
             here: raise the limit, as with ulimit -n 1024"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_are_refused_with_how_many_are_needed() {
        let settings = Settings::default();
        assert_eq!(check(&settings, 88), Ok(()));
        let error = check(&settings, 16).expect_err("too few");
        assert!(
            error.contains("needs 88 open files, and 16 are allowed"),
            "{error}"
        );
    }
}
