"""The options of the commands that work with single packets: push, capture, ping, arp."""

from __future__ import annotations

import argparse

from allosaur.cli import _options


def push(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur push`."""
    parser.add_argument("file", metavar="FILE", help="a pcap, pcapng or ERF file")
    parser.add_argument(
        "--remote",
        action="store_true",
        help="the file is on the server's machine: the server reads it while it sends, whatever its size",
    )
    parser.add_argument(
        "--ports", type=_options.port_list, default=[0], metavar="N,...", help="ports that send (default: 0)"
    )
    gaps = parser.add_mutually_exclusive_group()
    gaps.add_argument(
        "--ipg", type=_options.microseconds, metavar="US", help="send packets so many microseconds apart"
    )
    gaps.add_argument(
        "--min-ipg",
        type=_options.microseconds,
        metavar="US",
        help="keep the gaps of the file, but none shorter than so many microseconds",
    )
    parser.add_argument(
        "--speedup",
        type=_options.factor,
        default=1.0,
        metavar="F",
        help="how many times faster than the file (default: 1)",
    )
    parser.add_argument(
        "--count",
        type=_options.count,
        default=1,
        metavar="N",
        help="how often to send the file, or forever (default: 1)",
    )
    parser.add_argument(
        "-d",
        "--duration",
        type=_options.duration_s,
        default=_options.FOREVER,
        metavar="TIME",
        help="end after this time: seconds (10), or 500ms, 2m, 1h (default: when the file ends)",
    )
    parser.add_argument(
        "--dual",
        action="store_true",
        help="send both directions of the file, one from each port of a pair (0 and 1, 2 and 3)",
    )
    parser.add_argument("--src-mac-pcap", action="store_true", help="keep the source MAC addresses")
    parser.add_argument("--dst-mac-pcap", action="store_true", help="keep the destination MAC addresses")
    _server(parser)


def capture(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur capture`."""
    parser.add_argument(
        "--rx",
        type=_options.port_list,
        metavar="N,...",
        help="ports whose received packets to record (default: all ports, unless --tx is given)",
    )
    parser.add_argument(
        "--tx", type=_options.port_list, metavar="N,...", help="ports whose sent packets to record"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the packets to this file, pcapng if it ends in .pcapng, else pcap; - is the standard "
        "output (default: print a line for each)",
    )
    parser.add_argument(
        "-f", "--filter", default="", metavar="BPF", help="which packets, as for tcpdump (default: all)"
    )
    parser.add_argument(
        "-n",
        "--limit",
        type=_options.whole_number,
        metavar="N",
        help="end after so many packets (default: when stopped)",
    )
    parser.add_argument(
        "-d",
        "--duration",
        type=_options.duration_s,
        default=_options.FOREVER,
        metavar="TIME",
        help="end after this time (default: when stopped by Ctrl-C)",
    )
    parser.add_argument(
        "--snaplen",
        type=_options.whole_number,
        metavar="BYTES",
        help="bytes of each packet to keep (default: all)",
    )
    _server(parser)


def ping(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur ping`."""
    parser.add_argument(
        "address", type=_options.address, metavar="ADDRESS", help="the IPv4 or IPv6 address to ping"
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port that asks (default: 0)")
    _own_address(parser)
    parser.add_argument(
        "-n",
        "--count",
        type=_options.whole_number,
        default=5,
        metavar="N",
        help="how many times (default: 5)",
    )
    parser.add_argument(
        "-i",
        "--interval",
        type=_options.seconds,
        default=1.0,
        metavar="TIME",
        help="time between two pings (default: 1)",
    )
    parser.add_argument(
        "-s",
        "--size",
        type=_options.whole_number,
        default=64,
        metavar="BYTES",
        help="size of the frame without FCS, 64 to 9216 (default: 64)",
    )
    parser.add_argument(
        "--timeout",
        type=_options.seconds,
        default=3.0,
        metavar="TIME",
        help="how long to wait for each answer (default: 3)",
    )
    _server(parser)


def arp(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur arp`."""
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port that asks (default: 0)")
    _own_address(parser)
    parser.add_argument(
        "--retries",
        type=int,
        default=0,
        metavar="N",
        help="how often to ask again when nobody answers (default: 0)",
    )
    _server(parser)


def _own_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--source",
        type=_options.address,
        metavar="ADDRESS",
        help="first give the port this address (default: it keeps the one that it has)",
    )
    parser.add_argument(
        "--gateway",
        type=_options.address,
        metavar="ADDRESS",
        help="with --source: the address of the port's IPv4 gateway",
    )
    parser.add_argument(
        "--vlan",
        type=_options.vlan,
        metavar="TAG[,TAG]",
        help="VLAN of the packets, or two, the outer first (default: the port's)",
    )


def _server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server",
        type=_options.server_address,
        default=_options.ServerAddress(),
        metavar="HOST[:PORT]",
        help="the server to use (default: localhost:4501)",
    )
    parser.add_argument(
        "--pub-port",
        type=int,
        metavar="PORT",
        help="the server's event port (default: one below its RPC port)",
    )
    parser.add_argument("--force", action="store_true", help="take the ports over from whoever has them")
    _options.add_json(parser)
