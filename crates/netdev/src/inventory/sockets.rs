//! Programs that use interfaces by sockets of their own: packet sockets, and the claims of Allosaur's
//! servers.

use std::collections::BTreeMap;

use super::processes::{Holder, each_open_file, holder};
use super::tree::Tree;
use crate::claim;

/// A packet socket, as `/proc/net/packet` shows it.
struct PacketSocket {
    /// The interface; 0 is all of them.
    index: i32,
    inode: u64,
}

fn packet_sockets(tree: Tree<'_>) -> Vec<PacketSocket> {
    let text = tree.text("proc/net/packet");
    let sockets = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(PacketSocket {
            index: words.get(4)?.parse().ok()?,
            inode: words.get(8)?.parse().ok()?,
        })
    });
    sockets.collect()
}

/// How many packet sockets there are on each interface.
pub(super) fn packet_socket_counts(tree: Tree<'_>) -> BTreeMap<i32, usize> {
    let mut counts = BTreeMap::new();
    for socket in packet_sockets(tree) {
        *counts.entry(socket.index).or_default() += 1;
    }
    counts
}

/// What Allosaur's servers claim: interfaces by number, and network cards by address.
pub(super) fn claimed(tree: Tree<'_>) -> (Vec<i32>, Vec<String>) {
    let text = tree.text("proc/net/unix");
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    let names: Vec<&str> = names.filter_map(|name| name.strip_prefix('@')).collect();
    let interfaces = names.iter().filter_map(|name| claim::interface_of(name));
    let cards = names.iter().filter_map(|name| claim::card_of(name));
    (interfaces.collect(), cards.map(str::to_owned).collect())
}

/// Who has packet sockets, as far as this process may look into others.
pub(super) fn holders(tree: Tree<'_>) -> Vec<(i32, Holder)> {
    let sockets = packet_sockets(tree);
    let mut holders = Vec::new();
    if sockets.is_empty() {
        return holders;
    }
    each_open_file(tree, |process, target| {
        let inode = target
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'));
        let inode = inode.and_then(|inode| inode.parse::<u64>().ok());
        let socket = sockets.iter().find(|socket| Some(socket.inode) == inode);
        holders.extend(socket.map(|socket| (socket.index, holder(tree, process))));
    });
    holders.sort();
    holders.dedup();
    holders
}
