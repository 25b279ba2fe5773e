"""What to do about each counter that should be zero: a sentence by the counter's name."""

from __future__ import annotations

_LOST = (
    "packets were dropped or delayed on the path: compare the port counters with those of the device, "
    "or lower -m"
)
_SILENT = (
    "the peer did not answer: check that it listens, and find where packets are dropped (allosaur capture)"
)
_ORDER = "packets arrived out of order: the device or the path reorders"
_CHECKSUM = "bad checksums: a device that rewrites packets must update their checksums"
_WINDOW = "the receive window was full (zero window): raise tcp.rxbufsize, or let the program read sooner"
_TWICE = "duplicate data: spurious retransmissions after loss or a long delay"
_MEMORY = "out of memory for flows or packets: lower -m, or let flows end sooner"
_LATE = "packets for flows that were closed already, late packets, or packets of another sender"

_HINTS = {
    "tcps_conndrops": f"connections were refused, or {_SILENT}",
    "tcps_timeoutdrop": _SILENT,
    "tcps_rexmttimeo": _LOST,
    "tcps_rexmttimeo_syn": _SILENT,
    "tcps_persisttimeo": _WINDOW,
    "tcps_keeptimeo": "keepalive timeouts, or connections never established: see tcp.keepidle and keepinit",
    "tcps_keepprobe": "connections were idle: raise tcp.keepidle, or let programs send more often",
    "tcps_keepdrops": _SILENT,
    "tcps_sndrexmitpack": _LOST,
    "tcps_sndrexmitbyte": _LOST,
    "tcps_sndprobe": _WINDOW,
    "tcps_rcvbadsum": _CHECKSUM,
    "tcps_rcvduppack": _TWICE,
    "tcps_rcvdupbyte": _TWICE,
    "tcps_rcvpartduppack": _TWICE,
    "tcps_rcvpartdupbyte": _TWICE,
    "tcps_rcvoopackdrop": "the reassembly queue was full: raise tcp.reass_maxqlen or tcp.rxbufsize",
    "tcps_rcvoobytesdrop": "the reassembly queue was full: raise tcp.reass_maxqlen or tcp.rxbufsize",
    "tcps_rcvoopack": _ORDER,
    "tcps_rcvoobyte": _ORDER,
    "tcps_rcvpackafterwin": _WINDOW,
    "tcps_rcvbyteafterwin": _WINDOW,
    "tcps_rcvafterclose": "data arrived after close: the program should receive all of it before it ends",
    "tcps_rcvwinprobe": _WINDOW,
    "tcps_rcvdupack": _LOST,
    "tcps_reasalloc": _ORDER,
    "tcps_reasfree": _ORDER,
    "tcps_nombuf": _MEMORY,
    "tcps_sack_recovery_episode": _LOST,
    "tcps_sack_rexmits": _LOST,
    "tcps_sack_rexmit_bytes": _LOST,
    "tcps_sack_rcv_blocks": _LOST,
    "tcps_sack_send_blocks": _LOST,
    "udps_keepdrops": "flows were idle longer than their keepalive: datagrams were lost, or it is too short",
    "udps_nombuf": _MEMORY,
    "udps_pkt_toobig": "datagrams larger than the MTU: shorten them, or give the program a smaller udp_mtu",
    "err_cwf": f"clients: {_LATE}",
    "err_no_syn": f"servers: {_LATE}",
    "err_len_err": "packets are shorter than their headers say: find the device that truncates them",
    "err_fragments_ipv4_drop": "IPv4 fragments are not reassembled: keep messages below the path MTU",
    "err_no_template": "no template serves the destination port or address: see assoc of the templates",
    "err_no_memory": _MEMORY,
    "err_l3_cs": _CHECKSUM,
    "err_l4_cs": _CHECKSUM,
    "err_c_nf_throttled": _MEMORY,
    "err_c_tuple_err": "all source ports are in use: give the pool more clients, or let flows end sooner",
    "err_s_nf_throttled": _MEMORY,
    "err_flow_overflow": _MEMORY,
    "err_redirect_rx": "packets were dropped between threads: use fewer flows, or more cores",
    "rss_redirect_drops": "packets were dropped between threads: use fewer flows, or more cores",
}


def hint(name: str) -> str:
    """Return what to do about a counter; empty when nothing better than its name is known."""
    return _HINTS.get(name, "")
