//! Machines of files: a tree such as the kernel shows, and what is found in it.

use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::netlink::{Address, Link};

/// A folder that looks like `/`, and is gone at the end.
struct Fake(PathBuf);

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Fake {
    fn new() -> Fake {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("allosaur-machine-{}-{number}", std::process::id());
        let fake = Fake(std::env::temp_dir().join(name));
        std::fs::create_dir_all(fake.0.join("sys/class/net"))
            .expect("a folder for temporary files");
        fake
    }

    fn file(&self, path: &str, text: &str) -> &Fake {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("not the root")).expect("room for a folder");
        std::fs::write(path, text).expect("room for a file");
        self
    }

    fn folder(&self, path: &str) -> &Fake {
        std::fs::create_dir_all(self.0.join(path)).expect("room for a folder");
        self
    }

    /// A link to another place in the tree.
    fn link(&self, path: &str, target: &str) -> &Fake {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("not the root")).expect("room for a folder");
        symlink(self.0.join(target), path).expect("room for a link");
        self
    }

    /// An interface whose files lie in `folder`.
    fn interface(&self, folder: &str, name: &str, index: i32) -> &Fake {
        let folder = format!("{folder}/net/{name}");
        self.file(&format!("{folder}/type"), "1\n")
            .file(&format!("{folder}/ifindex"), &format!("{index}\n"))
            .file(&format!("{folder}/flags"), "0x1003\n")
            .file(&format!("{folder}/mtu"), "1500\n")
            .file(&format!("{folder}/address"), "02:00:00:00:00:01\n")
            .file(&format!("{folder}/carrier"), "1\n")
            .file(&format!("{folder}/speed"), "-1\n")
            .link(&format!("sys/class/net/{name}"), &folder)
    }

    /// A network card on the PCI bus with a driver. Gives its folder.
    fn card(&self, address: &str, driver: Option<&str>) -> String {
        let folder = format!("sys/devices/pci0000:00/{address}");
        self.file(&format!("{folder}/class"), "0x020000\n")
            .file(&format!("{folder}/vendor"), "0x8086\n")
            .file(&format!("{folder}/device"), "0x1572\n")
            .file(&format!("{folder}/numa_node"), "1\n")
            .link(&format!("sys/bus/pci/devices/{address}"), &folder);
        if let Some(driver) = driver {
            let target = format!("sys/bus/pci/drivers/{driver}");
            self.folder(&target);
            self.link(&format!("{folder}/driver"), &target);
        }
        folder
    }

    fn virtual_interface(&self, name: &str, index: i32) -> &Fake {
        self.interface("sys/devices/virtual", name, index)
    }

    /// Puts one interface on another, as the kernel shows it.
    fn above(&self, upper: &str, lower: &str, is_master: bool) -> &Fake {
        let upper_folder = format!("sys/class/net/{upper}");
        if is_master {
            self.link(&format!("sys/class/net/{lower}/master"), &upper_folder);
        }
        self.link(
            &format!("sys/class/net/{lower}/upper_{upper}"),
            &upper_folder,
        )
    }

    fn look(&self) -> Machine {
        self.look_live(&Live::default())
    }

    fn look_live(&self, live: &Live) -> Machine {
        Machine::look_at(&self.0, live)
    }
}

fn uses(machine: &Machine, name: &str) -> Vec<Use> {
    machine.interface(name).expect(name).uses.clone()
}

fn address(index: i32, ip: &str) -> Address {
    let ip: IpAddr = ip.parse().expect("an address");
    let prefix_bits = 24;
    Address {
        index,
        ip,
        prefix_bits,
    }
}

#[test]
fn cards_and_their_interfaces_know_each_other() {
    let fake = Fake::new();
    let folder = fake.card("0000:03:00.0", Some("i40e"));
    fake.interface(&folder, "eth3", 4)
        .file(&format!("{folder}/net/eth3/speed"), "25000\n")
        .link(&format!("{folder}/net/eth3/device"), &folder);
    let inner = fake.card("0000:00:04.0", Some("virtio-pci")) + "/virtio1";
    fake.interface(&inner, "eth0", 2)
        .folder("sys/bus/virtio/drivers/virtio_net")
        .link(
            &format!("{inner}/driver"),
            "sys/bus/virtio/drivers/virtio_net",
        )
        .link(&format!("{inner}/net/eth0/device"), &inner)
        .virtual_interface("veth1", 7)
        .file("sys/class/net/bonding_masters", "\n")
        .file("sys/class/net/lo/type", "772\n");
    fake.card("0000:04:00.0", None);
    fake.file("sys/devices/pci0000:00/0000:00:05.0/class", "0x010802\n")
        .link(
            "sys/bus/pci/devices/0000:00:05.0",
            "sys/devices/pci0000:00/0000:00:05.0",
        );
    let machine = fake.look();
    let names: Vec<&str> = machine
        .interfaces
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["eth0", "eth3", "veth1"]);
    let eth3 = machine.interface("eth3").expect("there");
    assert_eq!(
        (eth3.driver.as_deref(), eth3.pci.as_deref()),
        (Some("i40e"), Some("0000:03:00.0"))
    );
    assert_eq!((eth3.speed_mbps, eth3.numa_node), (Some(25_000), Some(1)));
    assert!(eth3.is_up && eth3.has_link && eth3.is_ethernet && eth3.is_hardware());
    let eth0 = machine.interface("eth0").expect("there");
    assert_eq!(
        (eth0.driver.as_deref(), eth0.pci.as_deref()),
        (Some("virtio_net"), Some("0000:00:04.0"))
    );
    assert_eq!(eth0.speed_mbps, None);
    assert!(!machine.interface("veth1").expect("there").is_hardware());
    let addresses: Vec<&str> = machine
        .devices
        .iter()
        .map(|one| one.address.as_str())
        .collect();
    assert_eq!(addresses, ["0000:00:04.0", "0000:03:00.0", "0000:04:00.0"]);
    assert_eq!(machine.devices[0].interfaces, ["eth0"]);
    assert_eq!(machine.devices[1].interfaces, ["eth3"]);
    assert_eq!(
        (
            machine.devices[2].driver.clone(),
            machine.devices[2].id.as_str()
        ),
        (None, "8086:1572")
    );
}

#[test]
fn the_users_of_an_interface_are_known() {
    let fake = Fake::new();
    fake.virtual_interface("eth0", 2)
        .virtual_interface("eth1", 3)
        .virtual_interface("eth2", 4)
        .file(
            "proc/net/route",
            "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
             eth0 00000000 0102000A 0003 0 0 0 00000000 0 0 0\n\
             eth1 0000000A 00000000 0001 0 0 0 000000FF 0 0 0\n",
        )
        .file(
            "proc/net/packet",
            "sk RefCnt Type Proto Iface R Rmem User Inode\n\
             0 3 3 0003 4 1 0 0 11\n0 3 3 0003 4 1 0 0 12\n0 3 3 0003 0 1 0 0 13\n",
        )
        .file(
            "proc/net/unix",
            "Num RefCount Protocol Flags Type St Inode Path\n\
             0: 2 0 0 1 01 9 /run/other\n0: 2 0 0 1 01 9 @allosaur/interface/4\n\
             0: 2 0 0 1 01 9 @allosaur/pci/0000:04:00.0\n",
        );
    let live = Live {
        addresses: vec![
            address(3, "10.0.0.7"),
            address(3, "fe80::1"),
            address(4, "fe80::2"),
        ],
        links: vec![Link {
            index: 4,
            kind: Some("veth".to_owned()),
            xdp: Some(5),
            peer: None,
        }],
        ssh_connection: None,
    };
    fake.card("0000:04:00.0", Some("vfio-pci"));
    fake.card("0000:05:00.0", Some("vfio-pci"));
    let machine = fake.look_live(&live);
    let claimed: Vec<bool> = machine.devices.iter().map(|card| card.is_claimed).collect();
    assert_eq!(claimed, [true, false]);
    assert_eq!(uses(&machine, "eth0"), [Use::DefaultRoute]);
    let given = "10.0.0.7".parse().expect("an address");
    assert_eq!(uses(&machine, "eth1"), [Use::Address(given, 24)]);
    assert_eq!(
        uses(&machine, "eth2"),
        [Use::Xdp(5), Use::Allosaur, Use::PacketSockets(2)]
    );
    assert_eq!(
        machine.interface("eth2").expect("there").kind.as_deref(),
        Some("veth")
    );
}

#[test]
fn the_way_of_a_session_is_found() {
    let routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                  eth0 00000000 0102000A 0003 0 0 0 00000000 0 0 0\n\
                  eth1 000010AC 00000000 0001 0 0 0 0000FFFF 0 0 0\n";
    let found = |session: Option<&str>, live_addresses: Vec<Address>, tcp: &str| {
        let fake = Fake::new();
        for (index, name) in [(2, "eth0"), (3, "eth1"), (4, "eth2")] {
            fake.virtual_interface(name, index);
        }
        fake.file("proc/net/route", routes)
            .file("proc/net/tcp", tcp);
        let machine = fake.look_live(&Live {
            addresses: live_addresses,
            ssh_connection: session.map(str::to_owned),
            ..Live::default()
        });
        let carrying = machine
            .interfaces
            .into_iter()
            .filter(|one| one.has_use(&Use::Session));
        carrying.map(|one| one.name).collect::<Vec<_>>()
    };
    // By the route to the user, and by the machine's address.
    assert_eq!(
        found(Some("172.16.9.9 4000 192.0.2.1 22"), vec![], ""),
        ["eth1"]
    );
    assert_eq!(
        found(Some("203.0.113.9 4000 192.0.2.1 22"), vec![], ""),
        ["eth0"]
    );
    let on_eth2 = vec![address(4, "192.0.2.1")];
    assert_eq!(
        found(Some("172.16.9.9 4000 192.0.2.1 22"), on_eth2, ""),
        ["eth1", "eth2"]
    );
    assert_eq!(
        found(Some("fe80::2%eth2 4000 fe80::1%eth2 22"), vec![], ""),
        ["eth2"]
    );
    // As root by sudo, only the kernel's table tells.
    let line = |state: &str| {
        let [near, far] = [[192u8, 0, 2, 1], [172, 16, 9, 9]].map(u32::from_ne_bytes);
        format!("sl local_address rem_address st\n 0: {near:08X}:0016 {far:08X}:C350 {state} 0 0\n")
    };
    assert_eq!(found(None, vec![], &line("01")), ["eth1"]);
    assert_eq!(found(None, vec![], &line("0A")), Vec::<String>::new());
    for nonsense in ["", "x", "1 2 3 4", "::1 1 ::1 22"] {
        assert_eq!(
            found(Some(nonsense), vec![], nonsense),
            Vec::<String>::new()
        );
    }
}

#[test]
fn the_session_of_those_who_started_this_process_counts() {
    let fake = Fake::new();
    let own = std::process::id();
    fake.virtual_interface("eth0", 2)
        .file(
            &format!("proc/{own}/stat"),
            &format!("{own} (a) b) S 77 1 1"),
        )
        .file(&format!("proc/{own}/environ"), "HOME=/root\0")
        .file("proc/77/stat", "77 (bash) S 0 1 1")
        .file(
            "proc/77/environ",
            "A=b\0SSH_CONNECTION=10.0.0.9 4000 10.0.0.1 22\0C=d\0",
        );
    let live = Live {
        addresses: vec![address(2, "10.0.0.1")],
        ..Live::default()
    };
    let machine = fake.look_live(&live);
    assert!(
        machine
            .interface("eth0")
            .expect("there")
            .has_use(&Use::Session)
    );
}

#[test]
fn what_lies_on_an_interface_weighs_on_it() {
    let fake = Fake::new();
    for (index, name) in [
        (2, "eth0"),
        (3, "bond0"),
        (4, "bond0.7"),
        (5, "eth1"),
        (6, "br0"),
    ] {
        fake.virtual_interface(name, index);
    }
    fake.above("bond0", "eth0", true)
        .above("bond0.7", "bond0", false)
        .above("br0", "eth1", true);
    let live = Live {
        addresses: vec![address(4, "10.0.0.1")],
        ssh_connection: Some("10.9.9.9 4000 10.0.0.1 22".to_owned()),
        ..Live::default()
    };
    let machine = fake.look_live(&live);
    assert_eq!(
        uses(&machine, "eth0"),
        [Use::Session, Use::MemberOf("bond0".to_owned())]
    );
    assert_eq!(
        uses(&machine, "bond0"),
        [Use::Session, Use::Below("bond0.7".to_owned())]
    );
    assert_eq!(uses(&machine, "eth1"), [Use::MemberOf("br0".to_owned())]);
    assert_eq!(uses(&machine, "br0"), []);
}

#[test]
fn the_kernel_s_driver_is_an_obstacle_and_the_remedy_is_named() {
    let fake = Fake::new();
    let tree = Tree(Path::new(&fake.0));
    for (address, driver, words) in [
        (
            "0000:03:00.0",
            Some("i40e"),
            &["i40e", "eth3", "prepare 0000:03:00.0", "port eth3"][..],
        ),
        ("0000:03:00.1", None, &["no driver", "prepare 0000:03:00.1"]),
        ("0000:03:00.2", Some("vfio-pci"), &[]),
        ("0000:03:00.3", Some("mlx5_core"), &[]),
        ("0000:03:00.4", Some("uio_pci_generic"), &[]),
    ] {
        let folder = fake.card(address, driver);
        if address.ends_with('0') {
            fake.interface(&folder, "eth3", 3);
        }
        let device = pci::find(tree, address).expect("there");
        match device.obstacle() {
            None => assert!(words.is_empty(), "{address}"),
            Some((problem, remedy)) => {
                let text = format!("{problem}. {remedy}");
                assert!(
                    !words.is_empty() && words.iter().all(|word| text.contains(word)),
                    "{text}"
                );
            }
        }
    }
    let disk = fake.card("0000:05:00.0", Some("nvme"));
    fake.file(&format!("{disk}/class"), "0x010802\n");
    let disk = pci::find(tree, "0000:05:00.0").expect("there");
    assert!(
        disk.obstacle()
            .is_some_and(|(problem, _)| problem.contains("no network card"))
    );
    assert_eq!(pci::find(tree, "0000:06:00.0"), None);
    assert_eq!(pci::find(tree, "../../../.."), None);
}

#[test]
fn hugepages_are_counted_and_their_lack_is_named() {
    let fake = Fake::new();
    let meminfo = |total: u64, free: u64| {
        format!(
            "MemFree: 1 kB\nHugePages_Total: {total}\nHugePages_Free: {free}\nHugepagesize: 2048 kB\n"
        )
    };
    let sizes = "sys/kernel/mm/hugepages";
    fake.file("proc/meminfo", &meminfo(100, 40))
        .file(&format!("{sizes}/hugepages-2048kB/free_hugepages"), "40\n")
        .file(
            &format!("{sizes}/hugepages-1048576kB/free_hugepages"),
            "0\n",
        );
    let pages = fake.look().hugepages;
    let shortage = pages.shortage().expect("80 MiB are too few");
    for words in ["80 MiB", "256 MiB", "128 of 2048 kB"] {
        assert!(shortage.contains(words), "{shortage}");
    }
    assert_eq!(pages.command(), "sysctl -w vm.nr_hugepages=188");
    fake.file(
        &format!("{sizes}/hugepages-1048576kB/free_hugepages"),
        "1\n",
    );
    assert_eq!(fake.look().hugepages.shortage(), None);
    let none = Fake::new().look().hugepages;
    assert!(
        none.shortage()
            .is_some_and(|text| text.contains("no hugepages"))
    );
}

#[test]
fn network_cards_need_hugepages_unless_the_kernel_drives_them_too() {
    let fake = Fake::new();
    fake.card("0000:03:00.0", Some("vfio-pci"));
    fake.card("0000:04:00.0", Some("mlx5_core"));
    fake.file(
        "proc/meminfo",
        "HugePages_Total: 3\nHugePages_Free: 3\nHugepagesize: 2048 kB\n",
    );
    let free = "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    fake.file(free, "3\n");
    let tree = Tree(&fake.0);
    let devices = ["0000:04:00.0,mprq_en=1", "0000:03:00.0"].map(str::to_owned);
    assert_eq!(pci::check_memory(tree, &devices[..1]), Ok(()));
    let (problem, remedy) = pci::check_memory(tree, &devices).expect_err("6 MiB");
    assert!(
        problem.contains("6 MiB of them are free, and 256 MiB are needed"),
        "{problem}"
    );
    assert_eq!(remedy, "Make more of them: sysctl -w vm.nr_hugepages=128");
    fake.file(free, "128\n");
    assert_eq!(pci::check_memory(tree, &devices), Ok(()));
    let (problem, remedy) = pci::check(tree, "0000:03:00.1").expect_err("not there");
    assert!(problem.contains("did you mean 0000:03:00.0?"), "{problem}");
    assert!(remedy.contains("allosaur ports"), "{remedy}");
    assert_eq!(pci::check(tree, "0000:03:00.0"), Ok(()));
}

#[test]
fn the_process_that_drives_a_card_is_named() {
    let fake = Fake::new();
    let by_vfio = fake.card("0000:03:00.0", Some("vfio-pci"));
    let by_uio = fake.card("0000:04:00.0", Some("igb_uio"));
    let by_kernel = fake.card("0000:05:00.0", Some("igb"));
    for (folder, group) in [(&by_vfio, "12"), (&by_kernel, "13")] {
        fake.link(
            &format!("{folder}/iommu_group"),
            &format!("sys/kernel/iommu_groups/{group}"),
        );
    }
    fake.folder(&format!("{by_uio}/uio/uio3"));
    let tree = Tree(&fake.0);
    assert_eq!(pci::check(tree, "0000:03:00.0"), Ok(()));
    let own = std::process::id();
    for (process, name, file) in [
        (own, "allosaur", "/dev/vfio/12"),
        (77, "testpmd", "/dev/vfio/13"),
        (78, "vpp", "/dev/uio3"),
    ] {
        fake.file(&format!("proc/{process}/comm"), name);
        let link = fake.0.join(format!("proc/{process}/fd/9"));
        std::fs::create_dir_all(link.parent().expect("a folder")).expect("room for a folder");
        symlink(file, link).expect("room for a link");
    }
    assert_eq!(
        pci::check(tree, "0000:03:00.0"),
        Ok(()),
        "what is our own is free"
    );
    let (problem, remedy) = pci::check(tree, "0000:04:00.0").expect_err("taken");
    assert_eq!(problem, "process 78 (vpp) has it already");
    assert!(remedy.contains("kill 78"), "{remedy}");
    fake.file("proc/79/comm", "testpmd\n").folder("proc/79/fd");
    symlink("/dev/vfio/12", fake.0.join("proc/79/fd/4")).expect("room for a link");
    let (problem, _) = pci::check(tree, "0000:03:00.0").expect_err("taken");
    assert_eq!(problem, "process 79 (testpmd) has it already");
    let holders: Vec<bool> = fake
        .look()
        .devices
        .iter()
        .map(|card| card.holder.is_some())
        .collect();
    assert_eq!(holders, [true, true, false]);
}

#[test]
fn an_empty_tree_is_an_empty_machine() {
    let fake = Fake::new();
    assert_eq!(fake.look(), Machine::default());
    fake.folder("sys/kernel/iommu_groups/0")
        .file("usr/bin/dpdk-devbind.py", "");
    let machine = fake.look();
    assert!(machine.has_iommu && machine.has_devbind);
}

#[test]
fn this_machine_can_be_looked_at() {
    let machine = Machine::look();
    assert!(
        machine
            .interfaces
            .iter()
            .all(|interface| interface.name != "lo")
    );
    let _ = holders();
}
