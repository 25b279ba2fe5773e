//! Nodes of the kernel's, real ones. Where the tests may not make namespaces, they are skipped.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use allosaur_nodes::node::{NodeIpv4, NodeIpv6, NodePlacement, link_local};
use allosaur_nodes::owner::{Owner, remove_leftovers};
use allosaur_nodes::{NodesError, PortNodes};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Nodes of a port; none where that is not allowed.
fn open(port: u8) -> Option<PortNodes> {
    let opened = Owner::new().and_then(|owner| PortNodes::open(Arc::new(owner), port));
    match opened {
        Ok(nodes) => Some(nodes),
        Err(error @ NodesError::Privilege(_)) => {
            let _ = writeln!(std::io::stderr(), "skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn ip(namespace: &str, arguments: &str) -> String {
    let words = arguments.split_whitespace();
    let command = Command::new("ip")
        .args(["-n", namespace])
        .args(words)
        .output();
    let Output { stdout, stderr, .. } = command.expect("`ip` is installed");
    String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from("/run/netns").join(name)
}

#[test]
fn a_node_has_its_addresses_and_is_gone_when_it_is_removed() {
    let Some(mut nodes) = open(0) else { return };
    let outer = nodes.outer().name().to_owned();
    let node = nodes
        .add(MAC, NodePlacement::Own)
        .expect("it is new")
        .clone();
    nodes
        .set_ipv4(
            MAC,
            Some(NodeIpv4 {
                address: [192, 0, 2, 7].into(),
                subnet: None,
                gateway: Some([192, 0, 2, 1].into()),
            }),
        )
        .expect("it is there");
    nodes
        .set_ipv6(
            MAC,
            Some(NodeIpv6 {
                address: Some("2001:db8::7".parse().expect("an address")),
                subnet: None,
            }),
        )
        .expect("it is there");
    let shown = ip(&node.namespace, "addr show dev eth0");
    for text in [
        "02:00:00:00:00:01",
        "192.0.2.7/32",
        "2001:db8::7/64",
        &link_local(MAC).to_string(),
    ] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
    assert!(!shown.contains("tentative"), "{shown}");
    let routes = ip(&node.namespace, "route");
    assert!(
        routes.contains("default via 192.0.2.1 dev eth0"),
        "{routes}"
    );
    let far = ip(&outer, &format!("addr show dev {}", node.outer_name));
    assert!(far.contains("UP") && !far.contains("inet"), "{far}");
    nodes.set_mtu(MAC, 9000).expect("it fits");
    nodes.set_ipv4(MAC, None).expect("it is there");
    nodes.set_ipv6(MAC, None).expect("it is there");
    let shown = ip(&node.namespace, "addr show dev eth0");
    assert!(
        shown.contains("mtu 9000") && !shown.contains("inet"),
        "{shown}"
    );
    nodes.remove(MAC).expect("it is there");
    assert!(!path(&node.namespace).exists());
    assert!(!ip(&outer, "link").contains(&node.outer_name));
    drop(nodes);
    assert!(!path(&outer).exists());
}

#[test]
fn nodes_share_a_namespace() {
    let Some(mut nodes) = open(1) else { return };
    let shared = nodes.add_shared().expect("a name").to_owned();
    for (mac, last) in [(MAC, 7), (OTHER, 8)] {
        nodes
            .add(mac, NodePlacement::Shared(&shared))
            .expect("it is new");
        let ipv4 = NodeIpv4 {
            address: [192, 0, 2, last].into(),
            subnet: Some(24),
            gateway: None,
        };
        nodes.set_ipv4(mac, Some(ipv4)).expect("it is there");
    }
    let refused = nodes.set_gateway(&shared, [198, 51, 100, 1].into());
    let refused = refused.expect_err("it is in no subnet").to_string();
    assert!(refused.contains("'dg' is 198.51.100.1"), "{refused}");
    nodes
        .set_gateway(&shared, [192, 0, 2, 1].into())
        .expect("reachable");
    assert!(ip(&shared, "route").contains("default via 192.0.2.1"));
    let refused = nodes.remove_shared(&shared).expect_err("it has nodes");
    assert!(refused.to_string().contains("has nodes (2)"), "{refused}");
    nodes.remove(OTHER).expect("it is there");
    assert!(path(&shared).exists());
    nodes.remove_all().expect("a new outer namespace");
    assert!(!path(&shared).exists());
    assert_eq!(nodes.nodes().count(), 0);
    nodes.add(MAC, NodePlacement::Own).expect("it is new again");
}

#[test]
fn what_is_wrong_is_named() {
    let Some(mut nodes) = open(2) else { return };
    nodes.add(MAC, NodePlacement::Own).expect("it is new");
    let named = |error: Result<_, NodesError>, words: &str| {
        let text = error.map(drop).expect_err(words).to_string();
        assert!(text.contains(words), "{text}");
    };
    named(
        nodes.add(MAC, NodePlacement::Own).map(drop),
        "has a node 02:00:00:00:00:01 already",
    );
    named(
        nodes.add([0xff; 6], NodePlacement::Own).map(drop),
        "'mac' is ff:ff:ff:ff:ff:ff",
    );
    named(
        nodes.add(OTHER, NodePlacement::Shared("dut")).map(drop),
        "no shared namespace 'dut'",
    );
    named(nodes.remove(OTHER).map(drop), "no node 02:00:00:00:00:02");
    named(nodes.set_mtu(MAC, 20), "'mtu' is 20: give 68 to 9216");
    // Somebody makes a namespace that has the name of the next node.
    let name = nodes.node(MAC).expect("it is there").namespace.clone();
    let (before, number) = name.rsplit_once('-').expect("it ends with a number");
    let number: u32 = number.parse().expect("a number");
    let taken = format!("{before}-{}", number + 1);
    fs::write(path(&taken), "").expect("the folder is there");
    named(
        nodes.add(OTHER, NodePlacement::Own).map(drop),
        &format!("'{taken}' is there already"),
    );
    assert!(path(&taken).exists(), "it is another's");
    fs::remove_file(path(&taken)).expect("ours");
    nodes
        .add(OTHER, NodePlacement::Own)
        .expect("the next name is free");
}

#[test]
fn what_a_server_left_is_removed_and_what_others_have_is_not() {
    let Some(mut nodes) = open(3) else { return };
    let own = nodes
        .add(MAC, NodePlacement::Own)
        .expect("it is new")
        .namespace
        .clone();
    // No process has such a number: the largest is 4194304.
    let left = "allosaur-99999999-0-1";
    let added = Command::new("ip").args(["netns", "add", left]).status();
    assert!(added.expect("`ip` is installed").success());
    let others = "allosaur-99999999-dut";
    fs::write(path(others), "").expect("the folder is there");
    remove_leftovers();
    assert!(!path(left).exists());
    assert!(path(&own).exists() && path(others).exists());
    fs::remove_file(path(others)).expect("ours");
}

#[test]
fn the_ports_own_node_stays_when_all_others_are_removed() {
    let Some(mut nodes) = open(4) else { return };
    nodes.add(OTHER, NodePlacement::Own).expect("it is new");
    let own = nodes.add(MAC, NodePlacement::Port).expect("it is new");
    let namespace = own.namespace.clone();
    let ipv4 = NodeIpv4 {
        address: [192, 0, 2, 7].into(),
        subnet: None,
        gateway: Some([192, 0, 2, 1].into()),
    };
    nodes.set_ipv4(MAC, Some(ipv4)).expect("it is there");
    // The second time it has been moved already.
    for _ in 0..2 {
        nodes.remove_all().expect("a new outer namespace");
        let left: Vec<_> = nodes.nodes().map(|node| node.mac).collect();
        assert_eq!(left, [MAC]);
        assert!(ip(&namespace, "addr show dev eth0").contains("192.0.2.7/32"));
        assert!(ip(&namespace, "route").contains("default via 192.0.2.1"));
        let outer = ip(nodes.outer().name(), "-brief link");
        assert!(outer.contains("LOWER_UP"), "{outer}");
    }
    nodes.remove(MAC).expect("it is there");
    assert!(!path(&namespace).exists());
}
