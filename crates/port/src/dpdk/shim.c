/* What DPDK offers to C only: functions that it inlines, and settings in structures whose layout is
 * its own business: one thin function for each, without any decision; those
 * are in the Rust files beside this one, whose declarations are in ffi.rs. */

#include <errno.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

/* ffi.rs reads and writes these fields in place. */
_Static_assert(offsetof(struct rte_mbuf, buf_addr) == 0, "see Mbuf in ffi.rs");
_Static_assert(offsetof(struct rte_mbuf, data_off) == 16, "see Mbuf in ffi.rs");
_Static_assert(offsetof(struct rte_mbuf, nb_segs) == 20, "see Mbuf in ffi.rs");
_Static_assert(offsetof(struct rte_mbuf, ol_flags) == 24, "see Mbuf in ffi.rs");
_Static_assert(offsetof(struct rte_mbuf, pkt_len) == 36, "see Mbuf in ffi.rs");
_Static_assert(offsetof(struct rte_mbuf, data_len) == 40, "see Mbuf in ffi.rs");
_Static_assert(offsetof(struct rte_mbuf, hash.usr) == 44, "see Mbuf in ffi.rs");
_Static_assert(sizeof(struct rte_mbuf) == 128, "see MBUF_BYTES in ffi.rs");
_Static_assert(RTE_PKTMBUF_HEADROOM == 128, "see HEADROOM_BYTES in ffi.rs");

_Static_assert(sizeof(struct rte_eth_xstat_name) == 64, "see CounterName in ffi.rs");
_Static_assert(sizeof(struct rte_eth_xstat) == 16, "see Counter in ffi.rs");
_Static_assert(offsetof(struct rte_eth_xstat, value) == 8, "see Counter in ffi.rs");

/* See KEPT_BY_SENDER in ffi.rs. */
#define KEPT_BY_SENDER 1

/* Of a device, before it is set up; see Limits in ffi.rs. */
struct limits {
	char driver[32];
	uint64_t hash_types;
	uint64_t tx_checksums;
	uint16_t tx_queues_max;
	uint16_t rx_queues_max;
	uint16_t mtu_max;
	uint16_t hash_key_bytes;
	uint64_t cuts_tcp;
};
_Static_assert(sizeof(struct limits) == 64, "see Limits in ffi.rs");

int allosaur_dpdk_errno(void)
{
	return rte_errno;
}

int allosaur_dpdk_limits(uint16_t port, struct limits *limits)
{
	struct rte_eth_dev_info info;
	int result = rte_eth_dev_info_get(port, &info);

	if (result != 0)
		return result;
	limits->tx_queues_max = info.max_tx_queues;
	limits->rx_queues_max = info.max_rx_queues;
	limits->mtu_max = info.max_mtu;
	/* Drivers that do not tell the length of their key have the usual one. */
	limits->hash_key_bytes = info.reta_size == 0 ? 0
		: info.hash_key_size > 0 ? info.hash_key_size : 40;
	limits->hash_types = info.flow_type_rss_offloads;
	limits->tx_checksums = info.tx_offload_capa & (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
		RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM);
	limits->cuts_tcp = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_TSO) != 0;
	/* A driver's name is never as long; the last byte stays zero. */
	memset(limits->driver, 0, sizeof(limits->driver));
	strncpy(limits->driver, info.driver_name, sizeof(limits->driver) - 1);
	if (info.max_rx_pktlen < (uint32_t)info.max_mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN)
		limits->mtu_max = info.max_rx_pktlen > RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN
			? info.max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN : RTE_ETHER_MTU;
	return 0;
}

static struct rte_eth_rss_conf hash(uint8_t *key, uint16_t key_bytes, uint64_t types)
{
	struct rte_eth_rss_conf conf;

	memset(&conf, 0, sizeof(conf));
	conf.rss_key = key;
	conf.rss_key_len = key_bytes;
	conf.rss_hf = types & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	return conf;
}

/* With a key, received frames of TCP, UDP and IP are shared out over the queues by its hash, as far
 * as the device has it. */
int allosaur_dpdk_configure(uint16_t port, uint16_t rx_queues, uint16_t tx_queues, uint16_t mtu,
		uint64_t tx_offloads, uint8_t *key, uint16_t key_bytes, uint64_t hash_types)
{
	struct rte_eth_conf conf;

	memset(&conf, 0, sizeof(conf));
	conf.rxmode.mtu = mtu;
	conf.txmode.offloads = tx_offloads;
	if (key_bytes > 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf = hash(key, key_bytes, hash_types);
	}
	return rte_eth_dev_configure(port, rx_queues, tx_queues, &conf);
}

/* The same for a device that runs: some drivers take the key only then. */
int allosaur_dpdk_set_hash(uint16_t port, uint8_t *key, uint16_t key_bytes, uint64_t hash_types)
{
	struct rte_eth_rss_conf conf = hash(key, key_bytes, hash_types);

	return rte_eth_dev_rss_hash_update(port, &conf);
}

/* The key that the device hashes by, and whether the hash of TCP and UDP is of addresses and ports. */
int allosaur_dpdk_hash_key(uint16_t port, uint8_t *key, uint16_t key_bytes, int *has_ports)
{
	const uint64_t with_ports = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP |
		RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	struct rte_eth_rss_conf conf = hash(key, key_bytes, 0);
	int result = rte_eth_dev_rss_hash_conf_get(port, &conf);

	*has_ports = (conf.rss_hf & with_ports) == with_ports;
	return result;
}

#define RETA_ENTRIES_MAX RTE_ETH_RSS_RETA_SIZE_512

/* The table that the hash is looked up in, 512 entries at most. */
struct reta {
	struct rte_eth_rss_reta_entry64 groups[RETA_ENTRIES_MAX / RTE_ETH_RETA_GROUP_SIZE];
	uint16_t entries;
};

/* A table whose entries are all asked for, with queues by turns. */
static int reta(uint16_t port, struct reta *table, uint16_t rx_queues)
{
	struct rte_eth_dev_info info;
	uint16_t entry;
	int result = rte_eth_dev_info_get(port, &info);

	if (result != 0)
		return result;
	if (info.reta_size == 0 || info.reta_size > RETA_ENTRIES_MAX)
		return -ENOTSUP;
	memset(table, 0, sizeof(*table));
	table->entries = info.reta_size;
	for (entry = 0; entry < table->entries; entry++) {
		struct rte_eth_rss_reta_entry64 *group = &table->groups[entry / RTE_ETH_RETA_GROUP_SIZE];

		group->mask |= (uint64_t)1 << entry % RTE_ETH_RETA_GROUP_SIZE;
		group->reta[entry % RTE_ETH_RETA_GROUP_SIZE] = entry % rx_queues;
	}
	return 0;
}

/* Gives each of so many queues its part of the table. */
int allosaur_dpdk_set_reta(uint16_t port, uint16_t rx_queues)
{
	struct reta table;
	int result = reta(port, &table, rx_queues);

	if (result != 0)
		return result;
	return rte_eth_dev_rss_reta_update(port, table.groups, table.entries);
}

/* The queue of each entry of the table, 512 at most. Returns how many entries there are, or a negative
 * error. */
int allosaur_dpdk_reta(uint16_t port, uint16_t *queues)
{
	struct reta table;
	uint16_t entry;
	int result = reta(port, &table, 1);

	if (result != 0)
		return result;
	result = rte_eth_dev_rss_reta_query(port, table.groups, table.entries);
	if (result != 0)
		return result;
	for (entry = 0; entry < table.entries; entry++)
		queues[entry] =
			table.groups[entry / RTE_ETH_RETA_GROUP_SIZE].reta[entry % RTE_ETH_RETA_GROUP_SIZE];
	return table.entries;
}

/* The device may change both numbers to what it can do. */
int allosaur_dpdk_descriptors(uint16_t port, uint16_t *rx, uint16_t *tx)
{
	return rte_eth_dev_adjust_nb_rx_tx_desc(port, rx, tx);
}

int allosaur_dpdk_rx_queue(uint16_t port, uint16_t queue, uint16_t descriptors, struct rte_mempool *pool)
{
	return rte_eth_rx_queue_setup(port, queue, descriptors, rte_eth_dev_socket_id(port), NULL, pool);
}

int allosaur_dpdk_tx_queue(uint16_t port, uint16_t queue, uint16_t descriptors)
{
	return rte_eth_tx_queue_setup(port, queue, descriptors, rte_eth_dev_socket_id(port), NULL);
}

int allosaur_dpdk_link(uint16_t port, uint32_t *speed_mbps, int *is_up)
{
	struct rte_eth_link link;
	int result;

	memset(&link, 0, sizeof(link));
	result = rte_eth_link_get_nowait(port, &link);
	*speed_mbps = link.link_speed;
	*is_up = link.link_status == RTE_ETH_LINK_UP;
	return result;
}

/* Frames that arrived and were lost. */
uint64_t allosaur_dpdk_lost(uint16_t port)
{
	struct rte_eth_stats stats;

	if (rte_eth_stats_get(port, &stats) != 0)
		return 0;
	return stats.imissed + stats.ierrors + stats.rx_nombuf;
}

uint16_t allosaur_dpdk_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_eth_tx_burst(port, queue, mbufs, count);
}

uint16_t allosaur_dpdk_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_eth_rx_burst(port, queue, mbufs, count);
}

/* A ring with one producer and one consumer, on any NUMA node. */
struct rte_ring *allosaur_dpdk_ring(const char *name, unsigned int count)
{
	return rte_ring_create(name, count, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

unsigned int allosaur_dpdk_dequeue(struct rte_ring *ring, struct rte_mbuf **mbufs, unsigned int count)
{
	return rte_ring_dequeue_burst(ring, (void **)mbufs, count, NULL);
}

/* Mbufs that it has room for. */
unsigned int allosaur_dpdk_ring_free(const struct rte_ring *ring)
{
	return rte_ring_free_count(ring);
}

/* Gives mbufs back to their pools as they are. */
void allosaur_dpdk_put(struct rte_mbuf **mbufs, unsigned int count)
{
	void *waiting[64];
	struct rte_mempool *pool = NULL;
	unsigned int number = 0;
	unsigned int place;

	for (place = 0; place < count; place++) {
		struct rte_mbuf *mbuf = mbufs[place];

		if (number > 0 && (mbuf->pool != pool || number == RTE_DIM(waiting))) {
			rte_mempool_put_bulk(pool, waiting, number);
			number = 0;
		}
		pool = mbuf->pool;
		waiting[number++] = mbuf;
	}
	if (number > 0)
		rte_mempool_put_bulk(pool, waiting, number);
}

/* As allosaur_dpdk_rx_burst, of an end of rings: what is read of each frame is on its way to the cache of the
 * first level, also the second mbuf of a pair. */
uint16_t allosaur_dpdk_rx_ring_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	uint16_t found = rte_eth_rx_burst(port, queue, mbufs, count);
	uint16_t place;

	for (place = 0; place < found; place++)
		rte_prefetch0(mbufs[place]);
	for (place = 0; place < found; place++) {
		char *data = rte_pktmbuf_mtod(mbufs[place], char *);

		rte_prefetch0(data);
		rte_prefetch0(data + RTE_CACHE_LINE_SIZE);
		if (mbufs[place]->nb_segs == 2)
			rte_prefetch0(rte_mbuf_to_priv(mbufs[place]));
	}
	return found;
}

/* Mbufs as they were freed: what was stamped is still there. All or none (then not 0). */
int allosaur_dpdk_take(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_mempool_get_bulk(pool, (void **)mbufs, count);
}

/* Checksums that the device computes; see ChecksumOffload in ffi.rs. */
struct checksum_offload {
	uint16_t l2_bytes;
	uint16_t l3_bytes;
	uint16_t l4_bytes;
	uint8_t is_ipv4;
	uint8_t is_tcp;
};
_Static_assert(sizeof(struct checksum_offload) == 8, "see ChecksumOffload in ffi.rs");

/* What a device must be able to do for that. */
uint64_t allosaur_dpdk_offloads(const struct checksum_offload *offload)
{
	return (offload->is_ipv4 ? RTE_ETH_TX_OFFLOAD_IPV4_CKSUM : 0) |
		(offload->is_tcp ? RTE_ETH_TX_OFFLOAD_TCP_CKSUM : RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
}

struct stamp {
	const uint8_t *bytes;
	uint16_t length;
	/* Or none. */
	const struct checksum_offload *offload;
};

static void stamp_one(struct rte_mempool *pool, void *argument, void *object, unsigned int number)
{
	const struct stamp *stamp = argument;
	struct rte_mbuf *mbuf = object;

	(void)pool;
	(void)number;
	rte_pktmbuf_reset(mbuf);
	mbuf->data_len = stamp->length;
	mbuf->pkt_len = stamp->length;
	if (stamp->offload != NULL) {
		mbuf->l2_len = stamp->offload->l2_bytes;
		mbuf->l3_len = stamp->offload->l3_bytes;
		mbuf->l4_len = stamp->offload->l4_bytes;
		mbuf->ol_flags |= stamp->offload->is_ipv4
			? RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM : RTE_MBUF_F_TX_IPV6;
		mbuf->ol_flags |= stamp->offload->is_tcp ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM;
	}
	memcpy(rte_pktmbuf_mtod(mbuf, void *), stamp->bytes, stamp->length);
}

/* Writes the same frame into every mbuf of a pool, wherever it is. */
void allosaur_dpdk_stamp(struct rte_mempool *pool, const uint8_t *bytes, uint16_t length,
		const struct checksum_offload *offload)
{
	struct stamp stamp = { bytes, length, offload };

	rte_mempool_obj_iter(pool, stamp_one, &stamp);
}

static void stamp_pair(struct rte_mempool *pool, void *argument, void *object, unsigned int number)
{
	struct rte_mbuf *mbuf = object;
	struct rte_mbuf *second = rte_mbuf_to_priv(mbuf);

	(void)argument;
	(void)number;
	rte_pktmbuf_reset(mbuf);
	memset(second, 0, sizeof(*second));
	second->pool = pool;
	second->nb_segs = 1;
	rte_mbuf_refcnt_set(second, 1);
	mbuf->next = second;
	mbuf->hash.usr = KEPT_BY_SENDER;
}

/* Puts a second mbuf behind every one of a pool, in its private area. */
void allosaur_dpdk_stamp_pairs(struct rte_mempool *pool)
{
	rte_mempool_obj_iter(pool, stamp_pair, NULL);
}

/* The bytes of a frame that lies in several mbufs; 0 when it is longer than there is room for. */
uint32_t allosaur_dpdk_gather(const struct rte_mbuf *mbuf, uint8_t *bytes, uint32_t room)
{
	const void *found;
	uint32_t length = rte_pktmbuf_pkt_len(mbuf);

	if (length > room)
		return 0;
	found = rte_pktmbuf_read(mbuf, 0, length, bytes);
	if (found == NULL)
		return 0;
	if (found != bytes)
		memcpy(bytes, found, length);
	return length;
}
