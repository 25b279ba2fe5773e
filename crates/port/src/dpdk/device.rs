//! A device of DPDK's, from its description to its queues.

use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allosaur_netdev::claim::Claim;
use allosaur_netdev::inventory;
use allosaur_packet::link::ethernet;
use allosaur_packet::offload::TxChecksumOffload;

use super::eal::{Eal, Failure, check, last_error};
use super::ffi;
use super::ffi::{ChecksumOffload, Limits};
use super::leftover;
use super::pool::Pool;
use super::rings::{RING_MBUFS, RINGS_MAX, Rings};
use crate::QueueCounts;
use crate::description::DpdkDevice;
use crate::memory::FRAME_BYTES_MAX;

/// Frames that a queue of the device holds, where the device leaves the choice.
const DESCRIPTORS: u16 = 1024;
/// What drivers want of an mbuf to receive into, at least, however short the frames are.
const RECEIVE_ROOM_BYTES_MIN: usize = 2048;
/// The MTU of a device that wants no other.
const MTU_DEFAULT: u16 = 1500;

/// A device that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) port: u16,
    bus: CString,
    name: CString,
    /// What it took the longest frame from.
    pub(super) mtu: u16,
    pub(super) rx_queues: u16,
    /// Threads that read them: by turns each has its queues, the first one the first.
    pub(super) readers: u16,
    /// It shares out by flow what arrives: each of its queues may have a reader of its own.
    pub(super) shares_out: bool,
    hash_key_bytes: u16,
    pub(super) tx_queues: u16,
    /// Of each transmit queue, held by who uses it, when there are not enough for all.
    tx_locks: Vec<Mutex<()>>,
    driver: String,
    /// The checksums that it computes, as bits of DPDK's.
    tx_checksums: u64,
    /// It cuts TCP data into segments.
    cuts_tcp: bool,
    /// Its mbufs are read, and freed, by whoever receives them.
    pub(super) is_ring: bool,
    /// What it fills with what arrives; `None` until it is set up.
    receive_pool: Option<Pool>,
    /// Where rings join it with another device, if they do.
    pub(super) ring_end: Option<RingEnd>,
    /// Keeps other servers from a network card.
    _claim: Option<Claim>,
}

/// Where rings join a device with its peer.
#[derive(Debug)]
pub(super) struct RingEnd {
    pub(super) rings: Arc<Rings>,
    /// Which of the two it is, 0 or 1.
    pub(super) port: usize,
    /// Each thread that sends to it has a ring of its own.
    pub(super) is_by_tx_queue: bool,
}

impl Device {
    /// Makes the device and starts it, with as many queues, as far as it has them.
    pub(super) fn open(
        description: &DpdkDevice,
        pci: &[String],
        wanted: QueueCounts,
    ) -> Result<Device, Failure> {
        let claim = match description.pci() {
            Some(_) => {
                inventory::check_device(description.name())?;
                Some(Claim::card(description.name())?)
            }
            None => None,
        };
        // The lock ends with this statement: who drops a device takes it again.
        let mut device = Device::add(&Eal::start(pci)?, description)?;
        device._claim = claim;
        device.set_up(wanted)?;
        Ok(device)
    }

    /// Makes two devices that are joined by rings, and starts them, each with as many queues.
    pub(super) fn open_pair(
        name: &str,
        pci: &[String],
        wanted: [QueueCounts; 2],
    ) -> Result<[Device; 2], Failure> {
        let tx_queues = wanted.map(|queues| queues.tx.min(RINGS_MAX));
        let rings = Eal::start(pci).map(|_| Rings::new(tx_queues))?;
        let rings = Arc::new(rings.ok_or_else(no_memory)?);
        let open = |port: usize| -> Result<Device, Failure> {
            let end = RingEnd {
                rings: Arc::clone(&rings),
                port,
                is_by_tx_queue: wanted[1 - port].tx <= RINGS_MAX,
            };
            let mut device = Device::join(&Eal::start(pci)?, name, end)?;
            device.set_up(wanted[port])?;
            Ok(device)
        };
        Ok([open(0)?, open(1)?])
    }

    /// Makes one device of a pair.
    fn join(eal: &Eal, name: &str, end: RingEnd) -> Result<Device, Failure> {
        let port = end.port;
        let own = CString::new(format!("{name}_{port}")).expect("descriptions have no zeros");
        // As DPDK names it.
        let name = CString::new(format!("net_ring_{name}_{port}")).expect("as above");
        if eal.find(&name).is_some() {
            return Err((
                "another port of this process has rings of this name".to_owned(),
                "Give them another name".to_owned(),
            ));
        }
        if !end.rings.make_device(port, &own) {
            return Err(plain(last_error()));
        }
        let number = eal.find(&name).expect("DPDK names it so");
        let mut device = Device::new(number, c"vdev".to_owned(), name);
        device.ring_end = Some(end);
        Ok(device)
    }

    fn add(eal: &Eal, description: &DpdkDevice) -> Result<Device, Failure> {
        let text = |text: &str| CString::new(text).expect("descriptions have no zeros");
        let name = free_name(eal, description);
        let bus = text(description.bus());
        if description.bus() == "vdev" && eal.find(&name).is_some() {
            return Err(taken());
        }
        let refused = |problem: String| refusal(description, &problem);
        if description.bus() == "vdev" {
            leftover::remove_socket(description);
            let arguments = text(&description.arguments_or_default());
            eal.add(&bus, &name, &arguments).map_err(refused)?;
        }
        let Some(port) = eal.find(&name) else {
            // What is no network device is not kept.
            let _ = eal.remove(&bus, &name);
            return Err(not_found(description));
        };
        Ok(Device::new(port, bus, name))
    }

    fn new(port: u16, bus: CString, name: CString) -> Device {
        Device {
            port,
            bus,
            name,
            mtu: MTU_DEFAULT,
            rx_queues: 1,
            readers: 1,
            shares_out: false,
            hash_key_bytes: 0,
            tx_queues: 1,
            tx_locks: Vec::new(),
            driver: String::new(),
            tx_checksums: 0,
            cuts_tcp: false,
            is_ring: false,
            receive_pool: None,
            ring_end: None,
            _claim: None,
        }
    }

    fn set_up(&mut self, wanted: QueueCounts) -> Result<(), Failure> {
        let limits = self.limits().map_err(plain)?;
        self.is_ring = limits.is_of(c"net_ring");
        let driver = CStr::from_bytes_until_nul(&limits.driver).unwrap_or_default();
        self.driver = driver.to_string_lossy().into_owned();
        self.tx_checksums = limits.tx_checksums;
        self.cuts_tcp = limits.cuts_tcp != 0;
        self.hash_key_bytes = limits.hash_key_bytes;
        let longest = (FRAME_BYTES_MAX - ethernet::HEADER_BYTES) as u16;
        let longest = longest.min(limits.mtu_max);
        let mut refused = String::new();
        // Drivers do not always do what they say they can.
        for (rx, mtu) in [
            (wanted.rx, longest),
            (wanted.rx, longest.min(MTU_DEFAULT)),
            (1, longest),
            (1, longest.min(MTU_DEFAULT)),
        ] {
            self.choose_queues(&limits, QueueCounts { rx, ..wanted });
            match self.configure(&limits, mtu) {
                Ok(()) => {
                    self.mtu = mtu;
                    self.start_queues()?;
                    self.set_hash(&limits);
                    return Ok(());
                }
                Err(problem) => refused = problem,
            }
        }
        Err(plain(refused))
    }

    /// How many queues of those that the device can have.
    fn choose_queues(&mut self, limits: &Limits, wanted: QueueCounts) {
        let (tx, rx) = (wanted.tx as u16, wanted.rx as u16);
        // memif refuses a peer with another number of queues, and its peers have one unless they
        // are told otherwise.
        let is_memif = limits.is_of(c"net_memif");
        let most = if is_memif { 1 } else { limits.tx_queues_max };
        self.tx_queues = tx.min(most.max(1));
        if self.tx_queues < tx {
            self.tx_locks = (0..self.tx_queues).map(|_| Mutex::new(())).collect();
        }
        let rx_most = limits.rx_queues_max.max(1);
        self.shares_out = rx > 1 && limits.shares_out();
        self.rx_queues = match self.shares_out {
            true => rx.min(rx_most),
            false if self.ring_end.is_some() => rx_most,
            // Drivers without hardware give all queues their part of what arrives, and what goes
            // into a ring comes out of the queue of the same number.
            false if self.bus.as_c_str() == c"vdev" => self.tx_queues.min(rx_most),
            false => 1,
        };
        self.readers = match &self.ring_end {
            Some(end) if end.is_by_tx_queue => rx.clamp(1, self.rx_queues),
            None if self.shares_out => self.rx_queues,
            _ => 1,
        };
    }

    fn configure(&self, limits: &Limits, mtu: u16) -> Result<(), String> {
        let key_bytes = match self.shares_out {
            true => usize::from(limits.hash_key_bytes),
            false => 0,
        };
        let mut key = symmetric_key(key_bytes);
        // SAFETY: the device is ours and not started; it copies the key, which is as long as said.
        check(unsafe {
            ffi::allosaur_dpdk_configure(
                self.port,
                self.rx_queues,
                self.tx_queues,
                mtu,
                self.tx_checksums,
                key.as_mut_ptr(),
                key_bytes as u16,
                limits.hash_types,
            )
        })
    }

    /// Some drivers take the key only from a device that runs, others only before: those refuse here.
    fn set_hash(&self, limits: &Limits) {
        if self.shares_out {
            let mut key = symmetric_key(usize::from(limits.hash_key_bytes));
            let (first, bytes) = (key.as_mut_ptr(), key.len() as u16);
            // SAFETY: the device is ours; it copies the key, which is as long as said.
            unsafe { ffi::allosaur_dpdk_set_hash(self.port, first, bytes, limits.hash_types) };
            // Drivers fill the table so by themselves, but for a few.
            // SAFETY: the device is ours, and has so many queues.
            unsafe { ffi::allosaur_dpdk_set_reta(self.port, self.rx_queues) };
        }
    }

    fn start_queues(&mut self) -> Result<(), Failure> {
        let (mut rx, mut tx) = (DESCRIPTORS, DESCRIPTORS);
        // SAFETY: the device is ours; both numbers are places of their own.
        check(unsafe { ffi::allosaur_dpdk_descriptors(self.port, &mut rx, &mut tx) })
            .map_err(plain)?;
        // As many as the device holds and as the receiving thread has in its hands and its cache.
        let mbufs = match self.is_ring {
            false => u32::from(rx) * u32::from(self.rx_queues) + 1023,
            // What was sent arrives: none is taken of these.
            true => 511,
        };
        let room = self.frame_bytes_max().max(RECEIVE_ROOM_BYTES_MIN);
        let pool = Pool::new(mbufs, room, self.socket(), true);
        let pool = pool.ok_or_else(no_memory)?;
        let pointer = pool.as_ptr();
        self.receive_pool = Some(pool);
        for queue in 0..self.rx_queues {
            // SAFETY: the pool is dropped after the device was closed.
            check(unsafe { ffi::allosaur_dpdk_rx_queue(self.port, queue, rx, pointer) })
                .map_err(plain)?;
        }
        for queue in 0..self.tx_queues {
            // SAFETY: the device is ours and not started.
            check(unsafe { ffi::allosaur_dpdk_tx_queue(self.port, queue, tx) }).map_err(plain)?;
        }
        // SAFETY: all its queues are set up.
        check(unsafe { ffi::rte_eth_dev_start(self.port) }).map_err(plain)
    }

    fn limits(&self) -> Result<Limits, String> {
        let mut limits = Limits::default();
        // SAFETY: the layout is that of the shim.
        check(unsafe { ffi::allosaur_dpdk_limits(self.port, &mut limits) })?;
        Ok(limits)
    }

    /// What it does for us beside sending and receiving, and its queues, in words.
    pub(super) fn in_words(&self) -> String {
        let mut words = vec![format!("driver {}", self.driver)];
        words.push(match self.tx_queues {
            1 => "1 transmit queue".to_owned(),
            count => format!("{count} transmit queues"),
        });
        if self.shares_out {
            words.push(format!("{} receive queues by RSS", self.rx_queues));
        }
        if self.tx_checksums != 0 {
            words.push("computes checksums".to_owned());
        }
        if self.cuts_tcp {
            words.push("can cut TCP data into segments".to_owned());
        }
        words.join(", ")
    }

    /// What the device is told of checksums that it shall compute, if it does.
    pub(super) fn leave(&self, checksums: &TxChecksumOffload) -> Option<ChecksumOffload> {
        let offload = ChecksumOffload {
            l2_bytes: checksums.l2_bytes.into(),
            l3_bytes: checksums.l3_bytes,
            l4_bytes: checksums.l4_bytes.into(),
            is_ipv4: checksums.is_ipv4.into(),
            is_tcp: checksums.is_tcp.into(),
        };
        // SAFETY: the layout is that of the shim.
        let needed = unsafe { ffi::allosaur_dpdk_offloads(&offload) };
        // The fields of an mbuf have 7 and 9 bits.
        let fits = offload.l2_bytes < 1 << 7 && offload.l3_bytes < 1 << 9;
        (fits && self.tx_checksums & needed == needed).then_some(offload)
    }

    /// Whether several threads send by one queue.
    pub(super) fn has_shared_queues(&self) -> bool {
        !self.tx_locks.is_empty()
    }

    /// The transmit queue of the thread of this number.
    pub(super) fn tx_queue(&self, thread: usize) -> u16 {
        (thread % usize::from(self.tx_queues)) as u16
    }

    /// Keeps other threads from a queue that they share, for as long as the guard lives.
    #[inline]
    pub(super) fn hold(&self, queue: u16) -> Option<MutexGuard<'_, ()>> {
        let lock = self.tx_locks.get(usize::from(queue))?;
        // Who panicked while it sent left a queue behind that is as good as before.
        Some(lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The hash key in use, and whether the hash of TCP and UDP is of addresses and ports.
    pub(super) fn hash_key(&self) -> Option<(Vec<u8>, bool)> {
        let mut key = vec![0; self.hash_key_bytes.into()];
        let (first, mut has_ports) = (key.as_mut_ptr(), 0);
        // SAFETY: the device runs, and there is room for as many bytes as it has.
        let result = unsafe {
            ffi::allosaur_dpdk_hash_key(self.port, first, self.hash_key_bytes, &mut has_ports)
        };
        (result == 0).then_some((key, has_ports != 0))
    }

    /// The queue of each entry of the table that the hash is looked up in.
    pub(super) fn indirection_table(&self) -> Option<Vec<u16>> {
        let mut queues = [0; ffi::RETA_ENTRIES_MAX];
        // SAFETY: the device runs, and the shim writes at most as many.
        let entries = unsafe { ffi::allosaur_dpdk_reta(self.port, &mut queues) };
        let queues = queues.get(..usize::try_from(entries).ok()?)?;
        Some(queues.to_vec())
    }

    /// The longest frame with a VLAN tag.
    pub(super) fn frame_bytes_max(&self) -> usize {
        (usize::from(self.mtu) + ethernet::HEADER_BYTES + 4).min(FRAME_BYTES_MAX)
    }

    /// The longest frame without a VLAN tag.
    pub(super) fn untagged_bytes_max(&self) -> usize {
        (usize::from(self.mtu) + ethernet::HEADER_BYTES).min(FRAME_BYTES_MAX)
    }

    /// Mbufs of the pool of a transmit queue: as many as the device holds, and as are on the way to it, at
    /// hand, or being read.
    pub(super) fn tx_mbufs(&self) -> u32 {
        let held = match self.ring_end {
            None => DESCRIPTORS.into(),
            Some(_) => RING_MBUFS,
        };
        held + 1023
    }

    /// The NUMA node of the device, or -1.
    pub(super) fn socket(&self) -> i32 {
        // SAFETY: reads a number of the device.
        unsafe { ffi::rte_eth_dev_socket_id(self.port) }
    }

    /// Its address.
    pub(super) fn mac(&self) -> Option<[u8; 6]> {
        let mut mac = [0; 6];
        // SAFETY: writes the six bytes.
        let result = unsafe { ffi::rte_eth_macaddr_get(self.port, &mut mac) };
        (result == 0 && mac != [0; 6]).then_some(mac)
    }

    /// Its speed in bits per second, if it tells, and whether it has a link.
    pub(super) fn link(&self) -> (Option<f64>, bool) {
        let (mut speed_mbps, mut is_up) = (0, 0);
        // SAFETY: both are places of their own.
        unsafe { ffi::allosaur_dpdk_link(self.port, &mut speed_mbps, &mut is_up) };
        let is_known = speed_mbps != 0 && speed_mbps != u32::MAX;
        (is_known.then(|| f64::from(speed_mbps) * 1e6), is_up != 0)
    }

    /// Frames that arrived and were lost.
    pub(super) fn lost_packets(&self) -> u64 {
        // SAFETY: reads counters.
        unsafe { ffi::allosaur_dpdk_lost(self.port) }
    }

    /// All that the driver counts, by its names; nothing when it does not tell.
    pub(super) fn counters(&self) -> Vec<(String, u64)> {
        // SAFETY: without room, nothing is written.
        let count = unsafe { ffi::rte_eth_xstats_get(self.port, std::ptr::null_mut(), 0) };
        let count = usize::try_from(count).unwrap_or(0);
        let mut counters = vec![ffi::Counter::default(); count];
        let mut names: Vec<ffi::CounterName> = vec![[0; 64]; count];
        // SAFETY: there is room for as many as said.
        let told = unsafe {
            let names = ffi::rte_eth_xstats_get_names(self.port, names.as_mut_ptr(), count as u32);
            names.min(ffi::rte_eth_xstats_get(
                self.port,
                counters.as_mut_ptr(),
                count as u32,
            ))
        };
        // A driver that has more by now, which it tells by a greater number, writes none.
        let told = usize::try_from(told).ok().filter(|told| *told <= count);
        let counters = counters.iter().take(told.unwrap_or(0));
        let named = counters.filter_map(|counter| {
            let name = names.get(usize::try_from(counter.id).ok()?)?;
            let name = CStr::from_bytes_until_nul(name).ok()?;
            Some((name.to_string_lossy().into_owned(), counter.value))
        });
        named.collect()
    }

    /// Lets frames to other stations through.
    pub(super) fn set_promiscuous(&self, on: bool) -> Result<(), String> {
        // SAFETY: the device runs.
        check(unsafe {
            match on {
                true => ffi::rte_eth_promiscuous_enable(self.port),
                false => ffi::rte_eth_promiscuous_disable(self.port),
            }
        })
    }

    /// Lets frames to all multicast addresses through.
    pub(super) fn set_multicast(&self, on: bool) -> Result<(), String> {
        // SAFETY: the device runs.
        check(unsafe {
            match on {
                true => ffi::rte_eth_allmulticast_enable(self.port),
                false => ffi::rte_eth_allmulticast_disable(self.port),
            }
        })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // It was started with what it may use; nothing new is asked for here.
        let Ok(eal) = Eal::start(&[]) else {
            return;
        };
        // SAFETY: all queues are gone, since they hold the device.
        unsafe {
            ffi::rte_eth_dev_stop(self.port);
            ffi::rte_eth_dev_close(self.port);
        }
        // A device that is not there any more is as well.
        let _ = eal.remove(&self.bus, &self.name);
    }
}

impl Limits {
    fn is_of(&self, driver: &CStr) -> bool {
        CStr::from_bytes_until_nul(&self.driver) == Ok(driver)
    }

    /// Whether the device shares out by flow what arrives. net_tap says so, and does it only for
    /// rules that somebody makes.
    fn shares_out(&self) -> bool {
        self.hash_key_bytes > 0 && self.hash_types != 0 && !self.is_of(c"net_tap")
    }
}

/// The key by which the hash of cards is the same for both directions of a flow: its bits repeat
/// every 16, so sources and destinations, of addresses and of ports, count alike.
pub(super) fn symmetric_key(bytes: usize) -> Vec<u8> {
    [0x6d, 0x5a].into_iter().cycle().take(bytes).collect()
}

/// The name that the user gave, or the driver's with the first number that is free.
fn free_name(eal: &Eal, description: &DpdkDevice) -> CString {
    let text = |text: String| CString::new(text).expect("descriptions have no zeros");
    let given = description.name().to_owned();
    if description.bus() == "pci" || given.ends_with(|c: char| c.is_ascii_digit()) {
        return text(given);
    }
    let numbered = (0..).map(|number: u32| text(format!("{given}{number}")));
    let mut free = numbered.filter(|name| eal.find(name).is_none());
    free.next().expect("there are more numbers than devices")
}

fn plain(problem: String) -> Failure {
    (
        format!("DPDK cannot set it up: {problem}"),
        "See what DPDK says above".to_owned(),
    )
}

fn refusal(description: &DpdkDevice, problem: &str) -> Failure {
    let driver = description.name();
    (
        format!("DPDK cannot make it: {problem}"),
        format!(
            "See what DPDK says above; the driver ({driver}, with or without a number) and its \
             arguments must be as in DPDK's guide of network drivers"
        ),
    )
}

fn taken() -> Failure {
    (
        "another port of this process is this device".to_owned(),
        "Leave the number out: each port then gets the next that is free".to_owned(),
    )
}

fn not_found(description: &DpdkDevice) -> Failure {
    match description.bus() {
        "pci" => (
            "DPDK finds no network card there that it can use".to_owned(),
            format!(
                "See what DPDK says above; `allosaur ports prepare {}` prints how a card is given to \
                 DPDK (most by the driver vfio-pci), and DPDK must have a driver for it too",
                description.name()
            ),
        ),
        _ => (
            "the driver made no port".to_owned(),
            "Use the name of a network driver, such as net_null or net_memif".to_owned(),
        ),
    }
}

pub(super) fn no_memory() -> Failure {
    (
        "DPDK has no memory left for its frames".to_owned(),
        format!(
            "Use fewer ports or sending threads, or give DPDK more hugepages ({} MiB of them are free): \
             sysctl -w vm.nr_hugepages=1024",
            inventory::hugepages().free_mib
        ),
    )
}
