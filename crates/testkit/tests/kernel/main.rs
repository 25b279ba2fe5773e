//! Our TCP against the kernel's: the same scripts with the kernel at both ends and with us at one of them must
//! look the same to applications, and the wire between must be sane.
//!
//! | what | where |
//! |---|---|
//! | what applications do, and what they saw | `script` |
//! | an end that is the kernel: a namespace with a tap device | `host`, `namespace`, `socket` |
//! | an end that is ours: a connection of the engine | `ours` |
//! | the link between, good or bad, and what passed | `link`, `watch` |
//! | an end that is ours as a whole: the stateful engine of a core | `core` |
//! | two ends at work | `pair` |
//! | the scripts | `scripts` |
//! | whole profiles against many sockets | `profiles` |
//! | applications over bytes against sockets and nginx | `bytes` |
//! | time that the host took away from this machine | `steal` |
//!
//! They need root (`CAP_NET_ADMIN` and `CAP_SYS_ADMIN`) and `/dev/net/tun`, and are skipped without, with a line
//! that says so. Nothing outside their own namespaces is touched.

mod bytes;
mod core;
mod host;
mod link;
mod namespace;
mod ours;
mod pair;
mod profiles;
mod script;
mod scripts;
mod socket;
mod steal;
mod watch;

/// Leaves a test where this machine cannot run it, and says why.
#[macro_export]
macro_rules! needs_taps {
    () => {
        if let Some(why) = $crate::host::why_not() {
            eprintln!("skipped: {why}");
            return;
        }
    };
}
