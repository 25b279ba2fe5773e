//! The words that name a kind of port.

use allosaur_netdev::names;

/// Each word, which stands before the settings of its kind.
const KIND_NAMES: [&str; 7] = [
    "memory",
    "dummy",
    "af_packet",
    "af_xdp",
    "vdev",
    "pci",
    "ring",
];

/// The kind of port that was meant by a misspelt one.
pub fn kind_like(name: &str) -> Option<&'static str> {
    let kind = name.split(':').next().unwrap_or_default();
    names::nearest(kind, KIND_NAMES).filter(|near| *near != kind)
}
