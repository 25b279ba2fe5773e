"""Error counters in plain words: what each one counts, and what to do about it, by the counter's name.

The words for what is counted are those of BSD's TCP.
"""

from __future__ import annotations

from collections.abc import Sequence

from allosaur.cli import _format

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

_COUNTERS = {
    "reset": (
        "flows reset by the peer",
        "the peer, or a device between, ended connections with RST: look at its log and its limits",
    ),
    "closed_early": (
        "flows closed by the peer before their end",
        "the peer closed before the program had what it waits for, or took what it sends: look at its "
        "log; a program that reads until the peer closes says recv_until_close()",
    ),
    "timed_out": ("flows that timed out", _SILENT),
    "refused": (
        "flows that were refused",
        "nobody listens at that address and port, or a firewall refuses: check both",
    ),
    "cut_off": (
        "flows cut off by the end of the test",
        "the test ended first: give flows longer (--close-within), or see why they last so long",
    ),
    "aborted": (
        "flows given up here",
        "too many flows for memory, or packets that make no sense: see the error counters",
    ),
    "unanswered": ("flows that got no data", "the peer sent no data: look at what it does with the request"),
    "http_4xx": (
        "responses of class 4xx",
        "the server refuses the request: check its path and its Host header",
    ),
    "http_5xx": ("responses of class 5xx", "the server fails: look at its log; it may be overloaded"),
    "http_other": ("responses without a status line of HTTP", "what came is no HTTP/1: is the port right?"),
    "tcps_conndrops": (
        "connections that failed before they were established",
        "how flows ended says which: refused (the peer said no) or timed out (nobody answered)",
    ),
    "tcps_timeoutdrop": ("connections dropped after retransmission timeouts", _SILENT),
    "tcps_rexmttimeo": ("retransmission timeouts", _LOST),
    "tcps_rexmttimeo_syn": ("retransmission timeouts of SYN, which opens a connection", _SILENT),
    "tcps_persisttimeo": ("persist timeouts before a closed window", _WINDOW),
    "tcps_persistdrop": ("connections dropped before a closed window", ""),
    "tcps_keeptimeo": (
        "keepalive timeouts",
        "keepalive timeouts, or connections never established: see tcp.keepidle and keepinit",
    ),
    "tcps_keepprobe": (
        "keepalive probes sent",
        "connections were idle: raise tcp.keepidle, or let programs send more often",
    ),
    "tcps_keepdrops": ("connections dropped by keepalive", _SILENT),
    "tcps_sndrexmitpack": ("data segments retransmitted", _LOST),
    "tcps_sndrexmitbyte": ("data bytes retransmitted", _LOST),
    "tcps_sndprobe": ("window probes sent", _WINDOW),
    "tcps_sndurg": ("segments sent with urgent data only", ""),
    "tcps_rcvbadsum": ("segments received with a bad checksum", _CHECKSUM),
    "tcps_rcvbadoff": ("segments received with a bad data offset", ""),
    "tcps_rcvshort": ("segments received too short", ""),
    "tcps_rcvduppack": ("duplicate segments received", _TWICE),
    "tcps_rcvdupbyte": ("duplicate bytes received", _TWICE),
    "tcps_rcvpartduppack": ("segments received with some duplicate data", _TWICE),
    "tcps_rcvpartdupbyte": ("duplicate bytes in partly duplicate segments", _TWICE),
    "tcps_rcvoopackdrop": (
        "out-of-order segments dropped",
        "the reassembly queue was full: raise tcp.reass_maxqlen or tcp.rxbufsize",
    ),
    "tcps_rcvoobytesdrop": (
        "out-of-order bytes dropped",
        "the reassembly queue was full: raise tcp.reass_maxqlen or tcp.rxbufsize",
    ),
    "tcps_rcvoopack": ("out-of-order segments received", _ORDER),
    "tcps_rcvoobyte": ("out-of-order bytes received", _ORDER),
    "tcps_rcvpackafterwin": ("segments received with data after the window", _WINDOW),
    "tcps_rcvbyteafterwin": ("bytes received after the window", _WINDOW),
    "tcps_rcvafterclose": (
        "segments received after the connection was closed",
        "data arrived after close: the program should receive all of it before it ends",
    ),
    "tcps_rcvwinprobe": ("window probes received", _WINDOW),
    "tcps_rcvdupack": ("duplicate acknowledgments received", _LOST),
    "tcps_rcvacktoomuch": ("acknowledgments received for data that was never sent", ""),
    "tcps_rcvwinupd": ("window updates received", ""),
    "tcps_pawsdrop": ("segments dropped for an old timestamp (PAWS)", ""),
    "tcps_badsyn": ("invalid SYN segments received", ""),
    "tcps_reasalloc": ("connections that began to reassemble out-of-order data", _ORDER),
    "tcps_reasfree": ("connections that ended reassembling out-of-order data", _ORDER),
    "tcps_nombuf": ("segments not sent for lack of memory", _MEMORY),
    "tcps_sack_recovery_episode": ("recoveries by selective acknowledgment (SACK)", _LOST),
    "tcps_sack_rexmits": ("segments retransmitted in SACK recoveries", _LOST),
    "tcps_sack_rexmit_bytes": ("bytes retransmitted in SACK recoveries", _LOST),
    "tcps_sack_rcv_blocks": ("SACK options received", _LOST),
    "tcps_sack_send_blocks": ("SACK options sent", _LOST),
    "udps_keepdrops": (
        "UDP flows dropped by keepalive",
        "flows were idle longer than their keepalive: datagrams were lost, or it is too short",
    ),
    "udps_nombuf": ("UDP messages not sent for lack of memory", _MEMORY),
    "udps_pkt_toobig": (
        "UDP messages too long for a packet",
        "datagrams larger than the MTU: shorten them, or give the program a smaller udp_mtu",
    ),
    "err_cwf": ("packets for a client without such a flow", f"clients: {_LATE}"),
    "err_no_syn": ("segments without SYN for a server without such a flow", f"servers: {_LATE}"),
    "err_len_err": (
        "packets with wrong lengths",
        "packets are shorter than their headers say: find the device that truncates them",
    ),
    "err_fragments_ipv4_drop": (
        "IPv4 fragments dropped",
        "IPv4 fragments are not reassembled: keep messages below the path MTU",
    ),
    "err_no_template": (
        "packets for which no server is defined",
        "no template serves the destination port or address: see assoc of the templates",
    ),
    "err_no_memory": ("flows refused for lack of memory", _MEMORY),
    "err_dct": ("flows refused because both ends had one already", ""),
    "err_l3_cs": ("packets with a bad IPv4 checksum", _CHECKSUM),
    "err_l4_cs": ("packets with a bad TCP or UDP checksum", _CHECKSUM),
    "err_c_nf_throttled": ("client flows held back", _MEMORY),
    "err_c_tuple_err": (
        "flows without a free source port",
        "all source ports are in use: give the pool more clients, or let flows end sooner",
    ),
    "err_s_nf_throttled": ("server flows held back", _MEMORY),
    "err_flow_overflow": ("flows above the limit of flows at a time", _MEMORY),
    "err_redirect_rx": (
        "packets lost on the way to the receive thread",
        "packets were dropped between threads: use fewer flows, or more cores",
    ),
    "rss_redirect_drops": (
        "packets lost between threads",
        "packets were dropped between threads: use fewer flows, or more cores",
    ),
    "err_defer_no_template": ("flows whose first bytes fit no template", ""),
    "err_tunnel_network": (
        "packets of another tunnel network (VNI)",
        "the peer sends in another network of VXLAN: give the port its vni, or any_vni",
    ),
    "tls_failures": ("TLS handshakes that failed without an alert", "the peer ended them: look at its log"),
    "tls_failures.no_tls": (
        "TLS handshakes in which the peer spoke no TLS",
        "what came is plain text, or another protocol: is the port right?",
    ),
    "tls_failures.unfinished": ("TLS handshakes that did not end", _SILENT),
    "tls_alerts_sent": (
        "fatal TLS alerts sent, which refuse what the peer said",
        "compare versions, suites, alpn and certificates of both ends",
    ),
    "tls_alerts_sent.certificate_expired": (
        "TLS certificates refused: expired",
        "renew the peer's certificate, and compare the clocks",
    ),
    "tls_alerts_sent.unknown_ca": (
        "TLS certificates refused: of an unknown authority",
        "give the authority that signed the peer's certificate as authorities",
    ),
    "tls_alerts_received": (
        "fatal TLS alerts received, by which the peer refuses",
        "compare versions, suites, alpn and certificates of both ends; the peer's log says more",
    ),
    "http_failures": ("HTTP requests without the response that was expected", ""),
    "http_failures.status": (
        "HTTP responses with a status that was not expected",
        "say with status= of HTTPRequest what may come, or look at the server's log",
    ),
    "http_failures.body_length": (
        "HTTP responses with a shorter or longer body than expected",
        "compare body_bytes of the request with what the server has",
    ),
    "http_failures.body_hash": ("HTTP responses with another body than expected", ""),
    "http_failures.malformed": (
        "HTTP messages that are none of HTTP/1",
        "what came is another protocol, or a faulty message: is the port right?",
    ),
    "http_failures.truncated": ("HTTP messages that the peer broke off", "look at the peer's log"),
    "http_failures.closed": ("HTTP requests that got a closed connection for an answer", ""),
    "http_failures.timeout": ("HTTP requests without a response in time", _SILENT),
    "err_tunnel_header": (
        "packets with a wrong tunnel header or outer checksum",
        "look at what sends them: the header must be VXLAN's, an outer UDP checksum right or 0",
    ),
    "err_address_spaces": (
        "flows above the limit of address spaces",
        "use fewer networks of tunnels and fewer prefixes of IPv6 at a time",
    ),
}
"""What each counts, and what to do about it; empty where nothing better than its name is known."""
_TOLD_MAX = 3


def meaning(name: str) -> str:
    """Return what a counter counts, in plain words; its name when there are none."""
    return _known(name)[0]


def hint(name: str) -> str:
    """Return what to do about a counter; empty when nothing better than its name is known."""
    return _known(name)[1]


def _known(name: str) -> tuple[str, str]:
    """Return what is known of a counter, or of those that differ from it by label, behind a dot."""
    if found := _COUNTERS.get(name):
        return found
    family, _, label = name.partition(".")
    what, remedy = _COUNTERS.get(family, ("", ""))
    return (f"{what}: {label}", remedy) if what else (name, "")


def told_shortly(errors: Sequence[tuple[str, str, int]]) -> str:
    """Return the first few of what was counted, with the counters' names, and how many more there are."""
    shown = [
        f"{meaning(name)}, at {side}s: {count:,} ({name})"
        if meaning(name) != name
        else f"{name} at {side}s: {count:,}"
        for side, name, count in errors[:_TOLD_MAX]
    ]
    more = [f"and {len(errors) - _TOLD_MAX} more"] if len(errors) > _TOLD_MAX else []
    return "; ".join([*shown, *more])


def error_lines(errors: Sequence[tuple[str, str, int]]) -> list[str]:
    """Return what is wrong, and what to do about it: a line for what has the same remedy on the same side."""
    alike: dict[tuple[str, str], list[str]] = {}
    for side, name, count in errors:
        alike.setdefault((side, hint(name)), []).append(f"{name} {_format.count(count)}")
    return [
        f"! {side} {', '.join(found)}" + (f": {remedy}" if remedy else "")
        for (side, remedy), found in alike.items()
    ]
