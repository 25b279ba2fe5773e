//! DPDK's functions and those of the shim, as Rust declares them.

use std::ffi::{c_char, c_int, c_uint};

/// Bytes in front of a frame in its mbuf.
pub(super) const HEADROOM_BYTES: usize = 128;

/// Bytes of an mbuf; the private area of its pool follows.
pub(super) const MBUF_BYTES: usize = 128;

/// What a mbuf is marked with that goes back to no pool: who sent it uses it again.
pub(super) const KEPT_BY_SENDER: u32 = 1;

/// The beginning of `struct rte_mbuf`.
#[repr(C)]
pub(super) struct Mbuf {
    pub(super) buf_addr: *mut u8,
    _iova_or_next: u64,
    pub(super) data_off: u16,
    _refcnt: u16,
    pub(super) nb_segs: u16,
    _port: u16,
    _ol_flags: u64,
    _packet_type: u32,
    pub(super) pkt_len: u32,
    pub(super) data_len: u16,
    _vlan_tci: u16,
    /// For whom the frame is of.
    pub(super) user: u32,
}

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Mbuf, data_off) == 16);
    assert!(offset_of!(Mbuf, nb_segs) == 20);
    assert!(offset_of!(Mbuf, pkt_len) == 36);
    assert!(offset_of!(Mbuf, data_len) == 40);
    assert!(offset_of!(Mbuf, user) == 44);
};

/// Entries of the longest table of a hash that the shim asks for.
pub(super) const RETA_ENTRIES_MAX: usize = 512;

/// `struct rte_mempool`, which only DPDK looks into.
#[repr(C)]
pub(super) struct Mempool {
    _opaque: [u8; 0],
}

/// `struct rte_ring`, which only DPDK looks into.
#[repr(C)]
pub(super) struct Ring {
    _opaque: [u8; 0],
}

/// `struct rte_eth_xstat_name`: a name, and zeros.
pub(super) type CounterName = [u8; 64];

/// `struct rte_eth_xstat`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    /// The place of its name.
    pub(super) id: u64,
    pub(super) value: u64,
}

/// What a device can do, see `struct limits` in the shim.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// Its driver's name, and zeros.
    pub(super) driver: [u8; 32],
    /// What its hash can be of, or nothing.
    pub(super) hash_types: u64,
    /// The checksums that it computes of frames that it sends, as bits of DPDK's.
    pub(super) tx_checksums: u64,
    pub(super) tx_queues_max: u16,
    pub(super) rx_queues_max: u16,
    pub(super) mtu_max: u16,
    /// 0 when it does not share out by a hash what arrives.
    pub(super) hash_key_bytes: u16,
    /// Not 0 when it cuts TCP data into segments (TSO).
    pub(super) cuts_tcp: u64,
}

const _: () = assert!(size_of::<Limits>() == 64);

/// Checksums that a device computes, see `struct checksum_offload` in the shim.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ChecksumOffload {
    pub(super) l2_bytes: u16,
    pub(super) l3_bytes: u16,
    pub(super) l4_bytes: u16,
    pub(super) is_ipv4: u8,
    pub(super) is_tcp: u8,
}

const _: () = assert!(size_of::<ChecksumOffload>() == 8);

unsafe extern "C" {
    pub(super) fn rte_eal_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub(super) fn rte_eal_get_runtime_dir() -> *const c_char;
    pub(super) fn rte_thread_register() -> c_int;
    pub(super) fn rte_thread_unregister();
    pub(super) fn rte_strerror(error: c_int) -> *const c_char;
    pub(super) fn rte_eal_hotplug_add(
        bus: *const c_char,
        device: *const c_char,
        arguments: *const c_char,
    ) -> c_int;
    pub(super) fn rte_eal_hotplug_remove(bus: *const c_char, device: *const c_char) -> c_int;
    pub(super) fn rte_eth_dev_get_port_by_name(name: *const c_char, port: *mut u16) -> c_int;
    pub(super) fn rte_eth_dev_start(port: u16) -> c_int;
    pub(super) fn rte_eth_dev_stop(port: u16) -> c_int;
    pub(super) fn rte_eth_dev_close(port: u16) -> c_int;
    pub(super) fn rte_eth_dev_socket_id(port: u16) -> c_int;
    pub(super) fn rte_eth_macaddr_get(port: u16, mac: *mut [u8; 6]) -> c_int;
    pub(super) fn rte_eth_xstats_get_names(
        port: u16,
        names: *mut CounterName,
        room: c_uint,
    ) -> c_int;
    pub(super) fn rte_eth_xstats_get(port: u16, counters: *mut Counter, room: c_uint) -> c_int;
    pub(super) fn rte_eth_promiscuous_enable(port: u16) -> c_int;
    pub(super) fn rte_eth_promiscuous_disable(port: u16) -> c_int;
    pub(super) fn rte_eth_allmulticast_enable(port: u16) -> c_int;
    pub(super) fn rte_eth_allmulticast_disable(port: u16) -> c_int;
    pub(super) fn rte_pktmbuf_pool_create(
        name: *const c_char,
        count: c_uint,
        cache: c_uint,
        private_bytes: u16,
        room_bytes: u16,
        socket: c_int,
    ) -> *mut Mempool;
    pub(super) fn rte_pktmbuf_free_bulk(mbufs: *mut *mut Mbuf, count: c_uint);
    pub(super) fn rte_mempool_avail_count(pool: *const Mempool) -> c_uint;
    pub(super) fn rte_mempool_free(pool: *mut Mempool);

    pub(super) fn rte_ring_free(ring: *mut Ring);
    pub(super) fn rte_eth_from_rings(
        name: *const c_char,
        rx_queues: *const *mut Ring,
        rx_count: c_uint,
        tx_queues: *const *mut Ring,
        tx_count: c_uint,
        socket: c_uint,
    ) -> c_int;

    pub(super) fn allosaur_dpdk_errno() -> c_int;
    pub(super) fn allosaur_dpdk_ring(name: *const c_char, count: c_uint) -> *mut Ring;
    pub(super) fn allosaur_dpdk_ring_free(ring: *const Ring) -> c_uint;
    pub(super) fn allosaur_dpdk_put(mbufs: *mut *mut Mbuf, count: c_uint);
    pub(super) fn allosaur_dpdk_stamp_pairs(pool: *mut Mempool);
    pub(super) fn allosaur_dpdk_dequeue(
        ring: *mut Ring,
        mbufs: *mut *mut Mbuf,
        count: c_uint,
    ) -> c_uint;
    pub(super) fn allosaur_dpdk_limits(port: u16, limits: *mut Limits) -> c_int;
    pub(super) fn allosaur_dpdk_configure(
        port: u16,
        rx_queues: u16,
        tx_queues: u16,
        mtu: u16,
        tx_offloads: u64,
        key: *mut u8,
        key_bytes: u16,
        hash_types: u64,
    ) -> c_int;
    pub(super) fn allosaur_dpdk_set_hash(
        port: u16,
        key: *mut u8,
        key_bytes: u16,
        hash_types: u64,
    ) -> c_int;
    pub(super) fn allosaur_dpdk_hash_key(
        port: u16,
        key: *mut u8,
        key_bytes: u16,
        has_ports: *mut c_int,
    ) -> c_int;
    pub(super) fn allosaur_dpdk_set_reta(port: u16, rx_queues: u16) -> c_int;
    pub(super) fn allosaur_dpdk_reta(port: u16, queues: *mut [u16; RETA_ENTRIES_MAX]) -> c_int;
    pub(super) fn allosaur_dpdk_descriptors(port: u16, rx: *mut u16, tx: *mut u16) -> c_int;
    pub(super) fn allosaur_dpdk_rx_queue(
        port: u16,
        queue: u16,
        descriptors: u16,
        pool: *mut Mempool,
    ) -> c_int;
    pub(super) fn allosaur_dpdk_tx_queue(port: u16, queue: u16, descriptors: u16) -> c_int;
    pub(super) fn allosaur_dpdk_link(port: u16, speed_mbps: *mut u32, is_up: *mut c_int) -> c_int;
    pub(super) fn allosaur_dpdk_lost(port: u16) -> u64;
    pub(super) fn allosaur_dpdk_tx_burst(
        port: u16,
        queue: u16,
        mbufs: *mut *mut Mbuf,
        count: u16,
    ) -> u16;
    pub(super) fn allosaur_dpdk_rx_burst(
        port: u16,
        queue: u16,
        mbufs: *mut *mut Mbuf,
        count: u16,
    ) -> u16;
    pub(super) fn allosaur_dpdk_rx_ring_burst(
        port: u16,
        queue: u16,
        mbufs: *mut *mut Mbuf,
        count: u16,
    ) -> u16;
    pub(super) fn allosaur_dpdk_take(
        pool: *mut Mempool,
        mbufs: *mut *mut Mbuf,
        count: u16,
    ) -> c_int;
    pub(super) fn allosaur_dpdk_stamp(
        pool: *mut Mempool,
        bytes: *const u8,
        length: u16,
        offload: *const ChecksumOffload,
    );
    pub(super) fn allosaur_dpdk_offloads(offload: *const ChecksumOffload) -> u64;
    pub(super) fn allosaur_dpdk_gather(mbuf: *const Mbuf, bytes: *mut u8, room: u32) -> u32;
}
