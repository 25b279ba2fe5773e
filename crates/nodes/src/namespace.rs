//! Named network namespaces, as `ip netns` has them: a name is a file in `/run/netns` on which the
//! namespace is mounted, and keeps it alive. See `ip-netns(8)` and `network_namespaces(7)`.
//!
//! The network namespace belongs to a thread. Whatever is done inside of another is done by a thread that
//! ends afterwards, so no thread of the caller is ever elsewhere.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::error::NodesError;

/// Where names are.
const FOLDER: &str = "/run/netns";
/// The namespace of a thread.
const OWN: &str = "/proc/thread-self/ns/net";
const NONE: Option<&Path> = None;

/// A network namespace with a name. It stays until it is [removed](NetworkNamespace::remove).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkNamespace {
    name: String,
}

impl NetworkNamespace {
    /// Makes one, and does something inside before anybody else can.
    ///
    /// # Errors
    ///
    /// A missing privilege, a name that is taken, what the system says, and what `act` gives; then
    /// there is none.
    pub fn make<R: Send>(
        name: &str,
        act: impl FnOnce() -> Result<R, NodesError> + Send,
    ) -> Result<(NetworkNamespace, R), NodesError> {
        let namespace = NetworkNamespace::named(name);
        let made = in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|error| NodesError::refused("make a network namespace", error))?;
            namespace.mount_own()?;
            act().inspect_err(|_| namespace.remove())
        })?;
        Ok((namespace, made))
    }

    /// One of that name, which is there.
    pub(crate) fn named(name: &str) -> NetworkNamespace {
        NetworkNamespace {
            name: name.to_owned(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does something inside. Sockets that are opened there stay there.
    ///
    /// # Errors
    ///
    /// It is gone, or the server may not enter it; and what `act` gives.
    pub fn within<R: Send>(
        &self,
        act: impl FnOnce() -> Result<R, NodesError> + Send,
    ) -> Result<R, NodesError> {
        in_thread(|| {
            self.enter()?;
            act()
        })
    }

    /// Takes this thread inside for good, and with it the programs that it starts.
    ///
    /// # Errors
    ///
    /// It is gone, or the server may not enter it.
    pub(crate) fn enter(&self) -> Result<(), NodesError> {
        setns(self.file()?, CloneFlags::CLONE_NEWNET)
            .map_err(|error| NodesError::refused("enter a network namespace", error))
    }

    /// Takes its name away. What is in it goes, unless a process runs inside.
    pub fn remove(&self) {
        let path = self.path();
        // Somebody may have mounted the folder once more on itself.
        while umount2(&path, MntFlags::MNT_DETACH).is_ok() {}
        // It is gone already where somebody was faster.
        let _ = fs::remove_file(path);
    }

    /// Removes those of which `is_wanted` says so by their names; how many.
    pub fn remove_all(mut is_wanted: impl FnMut(&str) -> bool) -> usize {
        let Ok(entries) = fs::read_dir(FOLDER) else {
            return 0;
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let wanted = names.filter(|name| is_wanted(name));
        let removed = wanted.map(|name| NetworkNamespace { name }.remove());
        removed.count()
    }

    /// The namespace as a file, as system calls take it.
    pub(crate) fn file(&self) -> Result<File, NodesError> {
        let refused = |error| NodesError::refused("open a network namespace", error);
        File::open(self.path()).map_err(refused)
    }

    fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }

    /// Gives the namespace of this thread its name.
    fn mount_own(&self) -> Result<(), NodesError> {
        let path = self.path();
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        made.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => NodesError::Foreign(self.name.clone()),
            _ => NodesError::refused("name a network namespace", error),
        })?;
        mount(Some(OWN), &path, NONE, MsFlags::MS_BIND, NONE).map_err(|error| {
            let _ = fs::remove_file(&path);
            NodesError::refused("name a network namespace", error)
        })
    }
}

/// Makes the folder of names what `ip netns` makes of it: a mount of its own, whose changes all mount
/// namespaces see. Once is enough, and it visits all names that there are.
pub(crate) fn share_folder() -> Result<(), NodesError> {
    let refused = |error| NodesError::refused("make the folder /run/netns", error);
    fs::create_dir_all(FOLDER).map_err(refused)?;
    let share = || {
        let flags = MsFlags::MS_SHARED | MsFlags::MS_REC;
        mount(NONE, FOLDER, NONE, flags, NONE)
    };
    let shared = match share() {
        // It is no mount yet.
        Err(Errno::EINVAL) => {
            let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(Some(FOLDER), FOLDER, NONE, flags, NONE).and_then(|()| share())
        }
        other => other,
    };
    shared.map_err(|error| refused(error.into()))
}

fn in_thread<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| match scope.spawn(act).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
