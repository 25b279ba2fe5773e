//! What a server that was killed may leave behind, and would keep the next one from starting.

use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::description::DpdkDevice;

/// Removes the socket file that a device of net_memif is about to make, where one is left that nobody
/// listens on.
pub(super) fn remove_socket(description: &DpdkDevice) {
    if !description.name().starts_with("net_memif") {
        return;
    }
    let listens = matches!(description.argument("role"), Some("server" | "master"));
    let is_file = description.argument("socket-abstract") == Some("no");
    let Some(path) = description.argument("socket").map(Path::new) else {
        return;
    };
    if listens && is_file && is_abandoned(path) {
        // Where it cannot be removed, DPDK says what it does not like.
        let _ = std::fs::remove_file(path);
    }
}

/// Whether this is a socket that nobody listens on.
fn is_abandoned(path: &Path) -> bool {
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    // A socket of another type that somebody listens on gives another error.
    let refused =
        || UnixStream::connect(path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
    is_socket && refused()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_sockets_that_nobody_listens_on_are_abandoned() {
        let folder = std::env::temp_dir().join(format!("allosaur-leftover-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a place for files");
        let (socket, file) = (folder.join("socket"), folder.join("file"));
        assert!(!is_abandoned(&socket), "there is nothing");
        let listener = UnixListener::bind(&socket).expect("a free name");
        assert!(!is_abandoned(&socket), "somebody listens");
        drop(listener);
        assert!(is_abandoned(&socket));
        std::fs::write(&file, b"").expect("a place for files");
        assert!(!is_abandoned(&file), "a file is no socket");
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
