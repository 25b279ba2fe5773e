"""Error counters in plain words: what each one counts, and what to do about it, by the counter's name.

The words for what is counted are those of BSD's TCP.
"""

from __future__ import annotations

from collections.abc import Sequence

from allosaur.report import FlowCounters

_LOST = (
    "packets were dropped or delayed on the path: compare the port counters with those of the device, "
    "or lower -m"
)
_SILENT = (
    "the peer did not answer: check that it listens, the MAC address that packets go to, and where packets "
    "are dropped (allosaur capture)"
)
_ORDER = "packets arrived out of order: the device or the path reorders"
_CHECKSUM = "bad checksums: a device that rewrites packets must update their checksums"
_WINDOW = "the receive window was full (zero window): raise tcp.rxbufsize, or let the program read sooner"
_TWICE = "duplicate data: spurious retransmissions after loss or a long delay"
_MEMORY = "out of memory for flows or packets: lower -m, or let flows end sooner"
_LATE = "packets for flows that were closed already, late packets, or packets of another sender"

_HINTS = {
    "reset": "the peer, or a device between, ended connections with RST: look at its log and its limits",
    "closed_early": (
        "the peer closed before the program had what it waits for, or took what it sends: look at its log; a "
        "program that reads until the peer closes says recv_until_close()"
    ),
    "timed_out": _SILENT,
    "refused": "nobody listens at that address and port, or a firewall refuses: check both",
    "cut_off": "the test ended first: give flows longer (--close-within), or see why they last so long",
    "aborted": "too many flows for memory, or packets that make no sense: see the error counters",
    "unanswered": "the peer sent no data: look at what it does with the request",
    "http_4xx": "the server refuses the request: check its path and its Host header",
    "http_5xx": "the server fails: look at its log; it may be overloaded",
    "http_other": "what came is no HTTP/1: is the port right?",
    "tcps_conndrops": "how flows ended says which: refused (the peer said no) or timed out (nobody answered)",
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

_MEANINGS = {
    "reset": "flows reset by the peer",
    "closed_early": "flows closed by the peer before their end",
    "timed_out": "flows that timed out",
    "refused": "flows that were refused",
    "cut_off": "flows cut off by the end of the test",
    "aborted": "flows given up here",
    "unanswered": "flows that got no data",
    "http_4xx": "responses of class 4xx",
    "http_5xx": "responses of class 5xx",
    "http_other": "responses without a status line of HTTP",
    "tcps_conndrops": "connections that failed before they were established",
    "tcps_timeoutdrop": "connections dropped after retransmission timeouts",
    "tcps_rexmttimeo": "retransmission timeouts",
    "tcps_rexmttimeo_syn": "retransmission timeouts of SYN, which opens a connection",
    "tcps_persisttimeo": "persist timeouts before a closed window",
    "tcps_persistdrop": "connections dropped before a closed window",
    "tcps_keeptimeo": "keepalive timeouts",
    "tcps_keepprobe": "keepalive probes sent",
    "tcps_keepdrops": "connections dropped by keepalive",
    "tcps_sndrexmitpack": "data segments retransmitted",
    "tcps_sndrexmitbyte": "data bytes retransmitted",
    "tcps_sndprobe": "window probes sent",
    "tcps_sndurg": "segments sent with urgent data only",
    "tcps_rcvbadsum": "segments received with a bad checksum",
    "tcps_rcvbadoff": "segments received with a bad data offset",
    "tcps_rcvshort": "segments received too short",
    "tcps_rcvduppack": "duplicate segments received",
    "tcps_rcvdupbyte": "duplicate bytes received",
    "tcps_rcvpartduppack": "segments received with some duplicate data",
    "tcps_rcvpartdupbyte": "duplicate bytes in partly duplicate segments",
    "tcps_rcvoopackdrop": "out-of-order segments dropped",
    "tcps_rcvoobytesdrop": "out-of-order bytes dropped",
    "tcps_rcvoopack": "out-of-order segments received",
    "tcps_rcvoobyte": "out-of-order bytes received",
    "tcps_rcvpackafterwin": "segments received with data after the window",
    "tcps_rcvbyteafterwin": "bytes received after the window",
    "tcps_rcvafterclose": "segments received after the connection was closed",
    "tcps_rcvwinprobe": "window probes received",
    "tcps_rcvdupack": "duplicate acknowledgments received",
    "tcps_rcvacktoomuch": "acknowledgments received for data that was never sent",
    "tcps_rcvwinupd": "window updates received",
    "tcps_pawsdrop": "segments dropped for an old timestamp (PAWS)",
    "tcps_badsyn": "invalid SYN segments received",
    "tcps_reasalloc": "connections that began to reassemble out-of-order data",
    "tcps_reasfree": "connections that ended reassembling out-of-order data",
    "tcps_nombuf": "segments not sent for lack of memory",
    "tcps_sack_recovery_episode": "recoveries by selective acknowledgment (SACK)",
    "tcps_sack_rexmits": "segments retransmitted in SACK recoveries",
    "tcps_sack_rexmit_bytes": "bytes retransmitted in SACK recoveries",
    "tcps_sack_rcv_blocks": "SACK options received",
    "tcps_sack_send_blocks": "SACK options sent",
    "udps_keepdrops": "UDP flows dropped by keepalive",
    "udps_nombuf": "UDP messages not sent for lack of memory",
    "udps_pkt_toobig": "UDP messages too long for a packet",
    "err_cwf": "packets for a client without such a flow",
    "err_no_syn": "segments without SYN for a server without such a flow",
    "err_len_err": "packets with wrong lengths",
    "err_fragments_ipv4_drop": "IPv4 fragments dropped",
    "err_no_template": "packets for which no server is defined",
    "err_no_memory": "flows refused for lack of memory",
    "err_dct": "flows refused because both ends had one already",
    "err_l3_cs": "packets with a bad IPv4 checksum",
    "err_l4_cs": "packets with a bad TCP or UDP checksum",
    "err_c_nf_throttled": "client flows held back",
    "err_c_tuple_err": "flows without a free source port",
    "err_s_nf_throttled": "server flows held back",
    "err_flow_overflow": "flows above the limit of flows at a time",
    "err_redirect_rx": "packets lost on the way to the receive thread",
    "rss_redirect_drops": "packets lost between threads",
    "err_defer_no_template": "flows whose first bytes fit no template",
}
_TOLD_MAX = 3


def meaning(name: str) -> str:
    """Return what a counter counts, in plain words; its name when there are none."""
    return _MEANINGS.get(name, name)


def told(side: str, name: str, count: int) -> str:
    """Return what was counted, as one says it, with the counter's name for those who look it up."""
    words = _MEANINGS.get(name)
    return f"{name} at {side}s: {count:,}" if words is None else f"{words}, at {side}s: {count:,} ({name})"


def told_shortly(errors: Sequence[tuple[str, str, int]]) -> str:
    """Return the first few of what was counted, and how many more there are."""
    shown = "; ".join(told(*one) for one in errors[:_TOLD_MAX])
    more = len(errors) - _TOLD_MAX
    return f"{shown}; and {more} more" if more > 0 else shown


def names(counters: FlowCounters) -> list[str]:
    """Return the names of all that is wrong: ways in which flows ended, and error counters."""
    return list(dict.fromkeys(name for _, name, _ in counters.trouble()))


def hint(name: str) -> str:
    """Return what to do about a counter; empty when nothing better than its name is known."""
    return _HINTS.get(name, "")
