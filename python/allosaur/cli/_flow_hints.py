"""What to do about each counter that should be zero: a sentence by the counter's name."""

from __future__ import annotations

_LOST = (
    "packets were lost on the way, or came too late: compare the counters of the ports and of the device, "
    "or lower -m"
)
_SILENT = "the other side did not answer: look at its ports, and for who drops the packets (allosaur capture)"
_ORDER = "packets came in another order than they were sent: the device or the path reorders"
_CHECKSUM = "checksums were wrong: who changes packets on the way must correct them"
_WINDOW = "the receiver's window was full: raise tcp.rxbufsize, or let its program read sooner"
_TWICE = "data came twice: it was sent again although it had arrived, after loss or a long delay"
_MEMORY = "memory for flows or packets ran out: lower -m, or let flows end sooner"
_LATE = "packets came for flows that were over already: late, or sent by somebody else"

_HINTS = {
    "tcps_conndrops": f"connections were refused, or {_SILENT}",
    "tcps_timeoutdrop": _SILENT,
    "tcps_rexmttimeo": _LOST,
    "tcps_rexmttimeo_syn": _SILENT,
    "tcps_persisttimeo": _WINDOW,
    "tcps_keeptimeo": "connections were silent for long, or not there in time: see tcp.keepidle and keepinit",
    "tcps_keepprobe": "connections were silent for long: raise tcp.keepidle, or let programs say more",
    "tcps_keepdrops": _SILENT,
    "tcps_sndrexmitpack": _LOST,
    "tcps_sndrexmitbyte": _LOST,
    "tcps_sndprobe": _WINDOW,
    "tcps_rcvbadsum": _CHECKSUM,
    "tcps_rcvduppack": _TWICE,
    "tcps_rcvdupbyte": _TWICE,
    "tcps_rcvpartduppack": _TWICE,
    "tcps_rcvpartdupbyte": _TWICE,
    "tcps_rcvoopackdrop": "too much came out of order: raise tcp.reass_maxqlen or tcp.rxbufsize",
    "tcps_rcvoobytesdrop": "too much came out of order: raise tcp.reass_maxqlen or tcp.rxbufsize",
    "tcps_rcvoopack": _ORDER,
    "tcps_rcvoobyte": _ORDER,
    "tcps_rcvpackafterwin": _WINDOW,
    "tcps_rcvbyteafterwin": _WINDOW,
    "tcps_rcvafterclose": "data came after the program had closed: it should receive all before it ends",
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
    "udps_keepdrops": "flows were silent longer than their keepalive: messages were lost, or it is too short",
    "udps_nombuf": _MEMORY,
    "udps_pkt_toobig": "messages do not fit the packet: shorten them, or give the program a smaller udp_mtu",
    "err_cwf": f"clients: {_LATE}",
    "err_no_syn": f"servers: {_LATE}",
    "err_len_err": "packets are shorter than their headers say: who makes them?",
    "err_fragments_ipv4_drop": "fragments are not put together: keep messages below the MTU of the path",
    "err_no_template": "no server is there for a port or address that was called: see assoc of the templates",
    "err_no_memory": _MEMORY,
    "err_l3_cs": _CHECKSUM,
    "err_l4_cs": _CHECKSUM,
    "err_c_nf_throttled": _MEMORY,
    "err_c_tuple_err": "source ports ran out: give the pool more clients, or let flows end sooner",
    "err_s_nf_throttled": _MEMORY,
    "err_flow_overflow": _MEMORY,
    "err_redirect_rx": "packets were lost between threads: use fewer flows, or more threads",
    "rss_redirect_drops": "packets were lost between threads: use fewer flows, or more threads",
}


def hint(name: str) -> str:
    """Return what to do about a counter; empty when nothing better than its name is known."""
    return _HINTS.get(name, "")
