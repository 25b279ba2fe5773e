//! Tests of the layout: a table of what was said, what the machine has, and what comes of it.

use super::*;
use crate::config::{Surroundings, load};

/// Two nodes of four CPUs, two of which are one physical core: 0 and 2, 1 and 3, and so on.
fn two_nodes() -> Vec<Cpu> {
    let cpu = |number| Cpu {
        number,
        node: Some(number / 4),
        sibling: number / 2 % 2,
    };
    (0..8).map(cpu).collect()
}

fn plain(cpus: usize) -> Vec<Cpu> {
    let cpu = |number| Cpu {
        number,
        node: None,
        sibling: 0,
    };
    (0..cpus).map(cpu).collect()
}

fn settings(text: &str) -> Settings {
    let loaded = load(text, &Surroundings::default());
    loaded.unwrap_or_else(|e| panic!("{text}: {e:?}")).settings
}

fn planned(text: &str, cpus: Vec<Cpu>, port_nodes: &[Option<usize>]) -> Result<Layout, String> {
    let machine = Machine {
        cpus,
        port_nodes: port_nodes.to_vec(),
    };
    plan(&settings(text), &machine).map_err(|error| error.to_string())
}

/// The threads of a layout as text: its ports and its CPU for each that sends, how these wait, and
/// the CPUs of those that receive.
fn shown(layout: &Layout) -> String {
    let cpu = |cpu: Option<usize>| cpu.map_or("any".to_owned(), |cpu| cpu.to_string());
    let join = |numbers: &[usize]| {
        let texts: Vec<String> = numbers.iter().map(usize::to_string).collect();
        texts.join("+")
    };
    let data = layout.data.iter();
    let data = data.map(|thread| format!("{}@{}", join(&thread.ports), cpu(thread.cpu)));
    let receive: Vec<String> = layout.receive.iter().map(|at| cpu(*at)).collect();
    format!(
        "{} {} / {} {}",
        data.collect::<Vec<_>>().join(" "),
        layout.data_poll.name(),
        receive.join(" "),
        layout.receive_poll.name()
    )
}

/// Four interfaces, and two groups of them, without CPUs and with.
const PAIRS: &str = "ports: [eth0, eth1, eth2, eth3]\n\
                     groups: [{ports: [0, 1], cores: 2}, {ports: [2, 3]}]\n";
const NAMED: &str = "ports: [eth0, eth1, eth2, eth3]\n\
                     groups: [{ports: [0, 1], cores: [5, 6]}, {ports: [2, 3], cores: [1]}]\n";

/// The queues of each port that data threads read with flows.
fn flow_queues(text: &str) -> Vec<usize> {
    let layout = planned(text, plain(8), &[]).expect("it can be laid out");
    layout.flow_queues
}

#[test]
fn with_flows_each_data_thread_reads_a_queue_unless_rings_cross() {
    let ports = |ports: &str| flow_queues(&format!("cores: 3\nports: [{ports}]\n"));
    assert_eq!(ports("memory, memory"), [3, 3]);
    assert_eq!(ports("eth0, dummy"), [3, 3]);
    let groups = "groups: [{ports: [0], cores: 2}, {ports: [1], cores: 3}]";
    let uneven = format!("ports: [memory, memory]\n{groups}");
    assert_eq!(flow_queues(&uneven), [1, 1], "rings would cross");
}

#[test]
fn with_flows_there_is_one_receive_thread() {
    let text = "stateful: true\nreceive_threads: 3";
    let layout = planned(text, plain(8), &[]).expect("it can be laid out");
    assert_eq!(layout.receive, [None]);
    assert!(layout.warnings[0].contains("receive_threads"));
}

/// What was said on a machine with so many CPUs, and what comes of it.
const ON_ONE_NODE: &[(&str, usize, &str)] = &[
    ("version: 1", 2, "0+1@any adaptive / any adaptive"),
    ("cores: 2", 8, "0+1@any 0+1@any adaptive / any adaptive"),
    // The system does not say which CPUs there are.
    ("cores: 2\npoll: busy", 0, "0+1@any 0+1@any busy / any busy"),
    // CPUs named: busy, while one is left for the others.
    ("cores: [1]", 2, "0+1@1 busy / any adaptive"),
    ("cores: [0, 1]", 2, "0+1@0 0+1@1 adaptive / any adaptive"),
    (
        "cores: [1]\npoll: adaptive",
        2,
        "0+1@1 adaptive / any adaptive",
    ),
    (
        "cores: [1]\nreceive_cpu: 1",
        2,
        "0+1@1 adaptive / 1 adaptive",
    ),
    (
        "cores: [1]\ncontrol_cpu: 1",
        2,
        "0+1@1 adaptive / any adaptive",
    ),
    (
        "cores: [1]\nreceive_cpu: 0\npoll: busy",
        2,
        "0+1@1 busy / 0 busy",
    ),
    (
        "receive_threads: 2",
        2,
        "0+1@any adaptive / any any adaptive",
    ),
    ("receive_cpu: [3, 2]", 4, "0+1@any adaptive / 3 2 adaptive"),
    (PAIRS, 8, "0+1@any 0+1@any 2+3@any adaptive / any adaptive"),
    (NAMED, 8, "0+1@5 0+1@6 2+3@1 busy / any adaptive"),
    // More threads than CPUs: in memory they share, elsewhere if the user says so.
    (
        "cores: 3",
        2,
        "0+1@any 0+1@any 0+1@any adaptive / any adaptive",
    ),
    (
        "ports: [eth0]\ncores: 2\npoll: adaptive",
        1,
        "0@any 0@any adaptive / any adaptive",
    ),
];

/// Ports on these nodes of a machine with two, where threads are pinned; and who receives.
const PINNED: &[(&str, [Option<usize>; 4], &str, &str)] = &[
    // First threads of physical cores first, near the ports, past what others have.
    ("cores: 3", [None; 4], "0+1@0 0+1@1 0+1@4", "5"),
    (
        "cores: 2\nreceive_cpu: 4",
        [Some(1), Some(1), None, None],
        "0+1@5 0+1@6",
        "4",
    ),
    (
        "receive_threads: 2",
        [Some(1), Some(1), None, None],
        "0+1@4",
        "5 6",
    ),
    (
        PAIRS,
        [Some(1), Some(1), Some(0), None],
        "0+1@4 0+1@5 2+3@0",
        "1",
    ),
    (NAMED, [None; 4], "0+1@5 0+1@6 2+3@1", "0"),
    // Who is near nothing leaves the others theirs.
    (
        PAIRS,
        [None, None, Some(0), Some(0)],
        "0+1@1 0+1@4 2+3@0",
        "5",
    ),
    // Ports on two nodes are near none; where a node is full, the other is better than none.
    ("cores: 1", [Some(1), Some(0), None, None], "0+1@0", "1"),
    (
        "cores: 5",
        [Some(1), Some(1), None, None],
        "0+1@4 0+1@5 0+1@6 0+1@7 0+1@0",
        "1",
    ),
    // One is left for control; those who receive run where they can.
    (
        "cores: 7",
        [None; 4],
        "0+1@0 0+1@1 0+1@4 0+1@5 0+1@2 0+1@3 0+1@6",
        "any",
    ),
];

#[test]
fn threads_are_laid_out_as_said() {
    let rows = ON_ONE_NODE.iter();
    let rows = rows.map(|&(text, cpus, expected)| {
        (text.to_owned(), plain(cpus), [None; 4], expected.to_owned())
    });
    let pinned = PINNED.iter().map(|&(text, nodes, expected, receive)| {
        let expected = format!("{expected} busy / {receive} adaptive");
        (format!("{text}\npin: true"), two_nodes(), nodes, expected)
    });
    for (text, cpus, nodes, expected) in rows.chain(pinned) {
        let layout = planned(&text, cpus, &nodes);
        let layout = layout.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(shown(&layout), expected, "{text}");
        assert_eq!(layout.warnings, [""; 0], "{text}");
    }
}

#[test]
fn what_cannot_work_says_why_and_what_to_do() {
    for (text, words) in [
        (
            "ports: [eth0, memory]\ncores: 3",
            ["3 threads send, and there are 2 CPU", "adaptive"],
        ),
        ("cores: 3\npoll: busy", ["3 threads send", "use at most 2"]),
        (
            "receive_cpu: 0\ncores: 2\npin: true",
            ["2 threads", "1 are left"],
        ),
    ] {
        let error = planned(text, plain(2), &[None; 2]).expect_err(text);
        assert!(
            words.iter().all(|word| error.contains(word)),
            "{text}: {error}"
        );
    }
}

#[test]
fn what_may_be_slow_is_a_warning_that_names_both_nodes() {
    for (text, nodes, words) in [
        (
            "ports: [eth0, memory]\ncores: [1]",
            [Some(1), None],
            [
                "port 0 (af_packet:eth0) is on NUMA node 1",
                "CPU 1",
                "on node 0",
                "4, 5, 6, 7",
            ],
        ),
        (
            "cores: 9\npin: true",
            [None; 2],
            ["share CPUs", "none of them is pinned", "", ""],
        ),
    ] {
        let layout = planned(text, two_nodes(), &nodes).expect("it starts");
        let [warning] = &layout.warnings[..] else {
            panic!("{text}: {:?}", layout.warnings);
        };
        assert!(
            words.iter().all(|word| warning.contains(word)),
            "{text}: {warning}"
        );
    }
    let trex = "- version: 2\n  interfaces: [memory, memory]\n  platform:\n    dual_if:\n    \
                - {socket: 0, threads: [5]}\n";
    let layout = planned(trex, two_nodes(), &[None; 2]).expect("it starts");
    assert_eq!(shown(&layout), "0+1@5 busy / any adaptive");
    assert_eq!(
        layout.warnings,
        [
            "CPU 5 is on NUMA node 1, and the configuration says node 0 (socket); those on node 0 are \
          0, 1, 2, 3"
        ]
    );
    let near = planned(trex, two_nodes(), &[Some(1), None]).expect("it starts");
    assert_eq!(
        near.warnings.len(),
        1,
        "the port is near, whatever the file says"
    );
}

#[test]
fn a_port_has_queues_of_its_own_group_only() {
    let text = "ports: [dummy, dummy, dummy]\nreceive_threads: 2\n\
                groups: [{ports: [0, 2], cores: 2}, {ports: [1], cores: 3}]";
    let layout = planned(text, plain(8), &[None; 3]).expect("it starts");
    let cores: Vec<_> = (0..3).map(|port| layout.cores_of(port)).collect();
    assert_eq!(cores, [vec![0, 1], vec![2, 3, 4], vec![0, 1]]);
    let queues = layout.queues(3);
    assert_eq!(
        queues.iter().map(|q| (q.tx, q.rx)).collect::<Vec<_>>(),
        [(3, 2), (4, 2), (3, 2)]
    );
}

#[test]
fn a_thread_knows_who_may_read_what_it_sends_on_joined_ports() {
    let readers = |text: &str, peers: &[Option<usize>]| -> Vec<Vec<usize>> {
        let layout = planned(text, plain(8), &[]).expect("it starts");
        let cores = 0..layout.data.len();
        cores.map(|core| layout.readers_of(core, peers)).collect()
    };
    let fed = |text: &str, peers: &[Option<usize>]| -> Vec<bool> {
        let layout = planned(text, plain(8), &[]).expect("it starts");
        let cores = 0..layout.data.len();
        cores.map(|core| layout.is_fed(core, peers)).collect()
    };
    let none: [usize; 0] = [];
    let pair = [Some(1), Some(0)];
    assert_eq!(fed("version: 1", &pair), [false]);
    assert_eq!(fed("cores: 3", &pair), [true, false, false]);
    assert_eq!(readers("version: 1", &pair), [none], "its own");
    assert_eq!(readers("cores: 3", &pair), [vec![], vec![0], vec![0]]);
    assert_eq!(readers("cores: 2", &[None; 2]), [none; 2], "not joined");
    let crossed = "groups: [{ports: [0], cores: 2}, {ports: [1], cores: 3}]";
    assert_eq!(
        readers(crossed, &pair),
        [vec![2], vec![2, 3], vec![0], vec![0, 1], vec![0]]
    );
    let apart = "ports: [memory, memory, memory, memory]\n\
                 groups: [{ports: [0, 1]}, {ports: [2, 3]}]";
    let peers = [Some(1), Some(0), Some(3), Some(2)];
    assert_eq!(readers(apart, &peers), [none; 2]);
}

#[test]
fn a_layout_is_told_in_words() {
    let text = "ports: [dummy, dummy, dummy]\nreceive_threads: 2\n\
                groups: [{ports: [0, 2], cores: [3]}, {ports: [1]}]";
    let layout = planned(text, plain(8), &[None; 3]).expect("it starts");
    assert_eq!(
        layout.in_words(),
        [
            "data-0 sends on port 0, 2, on CPU 3, adaptive",
            "data-1 sends on port 1, on any CPU, adaptive",
            "receive runs on any CPU, adaptive",
            "receive-1 runs on any CPU, adaptive",
        ]
    );
}
