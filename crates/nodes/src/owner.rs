//! Whose namespaces they are: names begin with the number of their server's process, and as long as it
//! lives it holds a lock. What a server left that was killed is known by a lock that nobody holds.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::NodesError;
use crate::namespace::{NetworkNamespace, share_folder};

/// How names of namespaces begin; the number of the process follows.
const PREFIX: &str = "allosaur-";
/// Where the locks are.
const FOLDER: &str = "/run/allosaur";

/// The end of the name of the namespace with BIRD.
const BIRD: &str = "bird";

/// The servers of one process that may have nodes.
const SERVERS_MAX: u32 = 64;

/// The right to the namespaces of one server; it ends with this, or with the process.
#[derive(Debug)]
pub struct Owner {
    /// The number of the process; behind it, for the second server of a process, which one it is.
    tag: String,
    /// The namespace with BIRD, where there is one.
    bird: Option<NetworkNamespace>,
    _lock: Flock<File>,
}

impl Owner {
    /// Of a server of this process.
    ///
    /// # Errors
    ///
    /// The folder of locks cannot be written, and what else the system says.
    pub fn new() -> Result<Owner, NodesError> {
        let process = std::process::id();
        let refused = |error| NodesError::refused("write to /run/allosaur", error);
        fs::create_dir_all(FOLDER).map_err(refused)?;
        for number in 0..SERVERS_MAX {
            let tag = match number {
                0 => process.to_string(),
                _ => format!("{process}.{number}"),
            };
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(false);
            let file = options.open(lock_path(&tag)).map_err(refused)?;
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => {
                    return Ok(Owner {
                        tag,
                        bird: None,
                        _lock: lock,
                    });
                }
                Err((_, Errno::EWOULDBLOCK)) => {}
                Err((_, error)) => return Err(refused(error.into())),
            }
        }
        Err(NodesError::Unfit(format!(
            "{SERVERS_MAX} servers of this process have nodes, which is the most: start another process"
        )))
    }

    /// How the names of a port's namespaces begin.
    pub fn port_prefix(&self, port: u8) -> String {
        format!("{PREFIX}{}-{port}", self.tag)
    }

    /// The namespace with BIRD, where there is one.
    pub fn bird(&self) -> Option<&NetworkNamespace> {
        self.bird.as_ref()
    }

    /// Makes the namespace with BIRD, in which `act` is done first.
    ///
    /// # Errors
    ///
    /// A missing privilege, what else the system says, and what `act` gives.
    pub(crate) fn make_bird(
        &mut self,
        act: impl FnOnce() -> Result<(), NodesError> + Send,
    ) -> Result<(), NodesError> {
        share_folder()?;
        let name = format!("{PREFIX}{}-{BIRD}", self.tag);
        let (namespace, ()) = NetworkNamespace::make(&name, act)?;
        self.bird = Some(namespace);
        Ok(())
    }

    /// The folder of BIRD's files.
    pub(crate) fn bird_folder(&self) -> PathBuf {
        bird_folder(&self.tag)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(bird) = &self.bird {
            bird.remove();
            let _ = fs::remove_dir_all(self.bird_folder());
        }
        let _ = fs::remove_file(lock_path(&self.tag));
    }
}

/// Removes the namespaces of servers that are gone; how many there were.
pub fn remove_leftovers() -> usize {
    let mut gone = BTreeMap::new();
    NetworkNamespace::remove_all(|name| {
        let Some(tag) = tag_of(name) else {
            return false;
        };
        let is_gone = match gone.get(tag) {
            Some(is_gone) => *is_gone,
            None => *gone.entry(tag.to_owned()).or_insert(is_gone(tag)),
        };
        if is_gone && name.ends_with(BIRD) {
            let _ = fs::remove_dir_all(bird_folder(tag));
        }
        is_gone
    })
}

fn bird_folder(tag: &str) -> PathBuf {
    PathBuf::from(FOLDER).join(format!("{BIRD}-{tag}"))
}

fn lock_path(tag: &str) -> PathBuf {
    PathBuf::from(FOLDER).join(format!("nodes-{tag}.lock"))
}

/// The server that has made a namespace of this name.
fn tag_of(name: &str) -> Option<&str> {
    let (tag, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let is_made_of = |text: &str, other: u8| {
        let mut bytes = text.bytes();
        !text.is_empty() && bytes.all(|byte| byte.is_ascii_digit() || byte == other)
    };
    (is_made_of(tag, b'.') && (rest == BIRD || is_made_of(rest, b'-'))).then_some(tag)
}

fn is_gone(tag: &str) -> bool {
    let path = lock_path(tag);
    let Ok(file) = File::open(&path) else {
        return true;
    };
    let is_free = Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok();
    if is_free {
        let _ = fs::remove_file(path);
    }
    is_free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_servers_are_known() {
        assert_eq!(tag_of("allosaur-77-0"), Some("77"));
        assert_eq!(tag_of("allosaur-77.1-0-12"), Some("77.1"));
        assert_eq!(tag_of("allosaur-77-bird"), Some("77"));
        for other in [
            "allosaur-77",
            "allosaur-x-0",
            "allosaur-7-dut",
            "dut",
            "allosaur-7-",
        ] {
            assert_eq!(tag_of(other), None, "{other}");
        }
    }
}
