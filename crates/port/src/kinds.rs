//! The kinds of port that there are, a row each: what a user, a configuration file and the check of a
//! machine must know before there is a port.
//!
//! All of the server, and the Python package by way of `allosaur-server ports --json`, read these rows. A
//! new kind is a folder beside this file, its queues in [`kind`](crate::kind), and a row here.

use allosaur_netdev::inventory::MEMORY_MIB_MIN;
use allosaur_netdev::names;

/// A kind of port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortKind {
    /// Its name, in replies and as the first word of most descriptions.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// The words that a description of such a port begins with.
    pub words: &'static [&'static str],
    /// What to write for such a port, as an error lists it.
    pub example: &'static str,
    /// What a port of it is on.
    pub base: PortBase,
    /// Whether a port takes all that arrives, so that the kernel gets nothing there.
    pub takes_all: bool,
    /// Whether the driver of an interface can spare it copies.
    pub may_be_zero_copy: bool,
    /// What TRex and DPDK call a virtual device of this kind.
    pub virtual_device: Option<&'static str>,
    /// Whether this program was built with it.
    pub is_built: bool,
    /// What it needs of the machine.
    pub needs: Needs,
}

/// What a port is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortBase {
    /// The server's own memory.
    Memory,
    /// An interface of the kernel.
    Interface,
    /// A network card, or another device, that DPDK drives.
    Card,
}

impl PortBase {
    /// As programs read it.
    pub fn name(self) -> &'static str {
        match self {
            PortBase::Memory => "memory",
            PortBase::Interface => "interface",
            PortBase::Card => "card",
        }
    }
}

/// What a kind of port needs of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The oldest kernel, major and minor version.
    pub linux: (u8, u8),
    /// Capabilities of the server's process, as Linux names them.
    pub capabilities: &'static [&'static str],
    /// Those to give to a program that lacks some: with some that it could do without.
    pub capabilities_given: &'static [&'static str],
    /// What the server opens, in words.
    pub sockets: &'static str,
    /// The line of /proc/net/protocols without which the kernel has no such sockets.
    pub protocol: &'static str,
    /// The option of the kernel's configuration that it stands for.
    pub kernel_option: &'static str,
    /// Memory that stays in place, for a process without CAP_IPC_LOCK.
    pub locked_mib: u32,
    /// Memory in large pages, for network cards.
    pub hugepages_mib: u64,
}

impl Needs {
    const NOTHING: Needs = Needs {
        linux: (0, 0),
        capabilities: &[],
        capabilities_given: &[],
        sockets: "",
        protocol: "",
        kernel_option: "",
        locked_mib: 0,
        hugepages_mib: 0,
    };
}

/// Ports in memory that are joined in pairs, see [`memory`](crate::memory).
pub static MEMORY: PortKind = PortKind {
    name: "memory",
    title: "memory",
    words: &["memory"],
    example: "memory",
    base: PortBase::Memory,
    takes_all: false,
    may_be_zero_copy: false,
    virtual_device: None,
    is_built: true,
    needs: Needs::NOTHING,
};

/// Ports that count what they are given and forget it.
pub static DUMMY: PortKind = PortKind {
    name: "dummy",
    title: "dummy",
    words: &["dummy"],
    example: "dummy",
    ..MEMORY
};

/// Interfaces beside the kernel's network stack, see [`af_packet`](crate::af_packet).
pub static AF_PACKET: PortKind = PortKind {
    name: "af_packet",
    title: "AF_PACKET",
    words: &["af_packet"],
    example: "an interface such as eth0, af_packet:eth0",
    base: PortBase::Interface,
    takes_all: false,
    may_be_zero_copy: false,
    virtual_device: Some("net_af_packet"),
    is_built: true,
    needs: Needs {
        linux: (4, 20),
        capabilities: &["CAP_NET_RAW"],
        capabilities_given: &["CAP_NET_RAW"],
        sockets: "packet sockets",
        ..Needs::NOTHING
    },
};

/// Interfaces past the kernel's network stack, see [`af_xdp`](crate::af_xdp).
pub static AF_XDP: PortKind = PortKind {
    name: "af_xdp",
    title: "AF_XDP",
    words: &["af_xdp"],
    example: "af_xdp:eth0",
    base: PortBase::Interface,
    takes_all: true,
    may_be_zero_copy: true,
    virtual_device: Some("net_af_xdp"),
    is_built: true,
    needs: Needs {
        linux: (5, 9),
        capabilities: &["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF"],
        capabilities_given: &["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF", "CAP_IPC_LOCK"],
        sockets: "XDP sockets",
        protocol: "XDP",
        kernel_option: "CONFIG_XDP_SOCKETS",
        // A port takes 8 MiB for what arrives, and 3 MiB for each thread that sends.
        locked_mib: 64,
        ..Needs::NOTHING
    },
};

/// Devices that DPDK drives, see [`dpdk`](crate::dpdk).
pub static DPDK: PortKind = PortKind {
    name: "dpdk",
    title: "DPDK",
    words: &["vdev", "pci", "ring"],
    example: "DPDK ports such as vdev:net_null, pci:0000:03:00.0 or two of ring:NAME",
    base: PortBase::Card,
    takes_all: true,
    may_be_zero_copy: false,
    virtual_device: None,
    is_built: cfg!(feature = "dpdk"),
    needs: Needs {
        hugepages_mib: MEMORY_MIB_MIN,
        ..Needs::NOTHING
    },
};

/// All of them.
pub static KINDS: [&PortKind; 5] = [&MEMORY, &DUMMY, &AF_PACKET, &AF_XDP, &DPDK];

/// The kind that a word in front of settings names.
pub fn kind_of(word: &str) -> Option<&'static PortKind> {
    KINDS.into_iter().find(|kind| kind.words.contains(&word))
}

/// Those on interfaces.
pub fn on_interfaces() -> impl Iterator<Item = &'static PortKind> {
    let kinds = KINDS.into_iter();
    kinds.filter(|kind| kind.base == PortBase::Interface)
}

/// The word that was meant by a misspelt one.
pub fn kind_like(name: &str) -> Option<&'static str> {
    let word = name.split(':').next().unwrap_or_default();
    let words = KINDS.iter().flat_map(|kind| kind.words).copied();
    names::nearest(word, words).filter(|near| *near != word)
}

/// What to write instead of a kind that there is not.
pub(crate) fn kinds_in_words() -> String {
    let examples = KINDS.map(|kind| kind.example);
    format!("The kinds are: {}", examples.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_names_one_kind() {
        let mut words: Vec<&str> = KINDS.iter().flat_map(|kind| kind.words).copied().collect();
        for word in &words {
            let kind = kind_of(word).expect("it is a word of some kind");
            assert!(kind.words.contains(word));
        }
        words.sort_unstable();
        words.dedup();
        let count: usize = KINDS.iter().map(|kind| kind.words.len()).sum();
        assert_eq!(words.len(), count);
        assert_eq!(kind_of("eth0"), None);
    }

    #[test]
    fn a_misspelt_word_has_a_near_one() {
        assert_eq!(kind_like("af_xpd:eth0"), Some("af_xdp"));
        assert_eq!(kind_like("memory"), None);
        assert_eq!(kind_like("isa"), None);
    }
}
