"""Scenarios of ports as hosts and witnesses: captures, files that are sent, service mode, events, readers."""

# the order of imports matters here
import re
import struct
from pathlib import Path

import zmq
from scapy.layers.inet import TCP
from scapy.utils import rdpcap, wrpcap
from steps import PORTS, WAIT_SECONDS, counters, packet, refusal, wait_until
from trex.common.services.trex_service_arp import ServiceARP
from trex.common.services.trex_service_icmp import ServiceICMP
from trex.stl.api import IP, Ether, STLStream, STLTXCont, STLTXSingleBurst

MINE, THEIRS = "192.0.2.1", "192.0.2.2"
MINE6, THEIRS6 = "2001:db8::1", "2001:db8::2"


def connected(connect, user="itay"):
    """A client that has reset both ports."""
    client = connect(user)
    client.reset(ports=PORTS)
    return client


def in_service(connect):
    """A client whose ports are in service mode."""
    client = connected(connect)
    client.set_service_mode(ports=PORTS)
    return client


def numbered(n, port=80):
    """A TCP packet that carries its number."""
    return (
        Ether() / IP(src=MINE, dst=THEIRS) / TCP(dport=port, sport=1025) / struct.pack("!I", n) / (b"x" * 32)
    )


def numbers(packets):
    """The numbers that captured packets carry."""
    return [struct.unpack("!I", one["binary"][54:58])[0] for one in packets]


def captures(connect, folder):
    """Several captures of the same traffic: fixed and cyclic, filtered, cut, to a list and to a file."""
    client = in_service(connect)
    seen = {"bad_filter": refusal(client.start_capture, rx_ports=[1], bpf_filter="no such words")}
    ids = {
        "web": client.start_capture(rx_ports=[1], limit=100, bpf_filter="tcp dst port 80")["id"],
        "newest": client.start_capture(tx_ports=[0], limit=5, mode="cyclic")["id"],
        "oldest": client.start_capture(tx_ports=[0], rx_ports=[1], limit=5)["id"],
        "cut": client.start_capture(rx_ports=[1], limit=100, snaplen=20)["id"],
        "nothing": client.start_capture(rx_ports=[1], limit=100, bpf_filter="udp and host 203.0.113.9")["id"],
    }
    sent = [numbered(n, port=80 if n % 2 else 81) for n in range(20)]
    client.push_packets(sent, ports=[0])
    wait_until(lambda: client.get_stats()[1]["ipackets"] >= len(sent))
    status = {one["id"]: one for one in client.get_capture_status().values()}
    seen["status"] = {name: status[number] for name, number in ids.items()}
    first = []
    client.fetch_capture_packets(ids["web"], first, pkt_count=4)
    seen["fetched"] = numbers(first)
    got = {name: [] for name in ids}
    for name in ("newest", "oldest", "cut", "nothing"):
        client.stop_capture(ids[name], output=got[name])
    file = f"{folder}/web.pcap"
    client.stop_capture(ids["web"], output=file)
    seen["file"] = [bytes(one)[54:58].hex() for one in rdpcap(file)]
    seen["got"] = {name: numbers(got[name]) for name in ("newest", "oldest", "nothing")}
    seen["origins"] = [(one["origin"], one["port"]) for one in got["oldest"]]
    seen["lengths"] = sorted({len(one["binary"]) for one in got["cut"]}), len(got["cut"])
    seen["whole_lengths"] = sorted({one.get("wirelen") for one in got["cut"]})
    times = [one["ts"] for one in got["newest"]]
    seen["in_order"] = times == sorted(times)
    seen["unknown"] = refusal(client.stop_capture, ids["web"])
    many = [client.start_capture(rx_ports=[1])["id"] for _ in range(10)]
    seen["one_too_many"] = refusal(client.start_capture, rx_ports=[1])
    client.remove_all_captures()
    seen["left"] = len(client.get_capture_status())
    client.set_service_mode(ports=PORTS, enabled=False)
    seen["without_service"] = refusal(client.start_capture, rx_ports=[1])
    return {**seen, "many": len(many)}


def files(connect, folder):
    """A file that the client sends as streams, and that the server reads by itself."""
    client = connected(connect)
    path = f"{folder}/traffic.pcap"
    wrpcap(path, [numbered(n) for n in range(30)])
    seen = {"runs": {}}

    def run(name, push, **options):
        client.clear_stats()
        push(path, ports=options.pop("ports", [0]), **options)
        client.wait_on_traffic(ports=PORTS, timeout=WAIT_SECONDS)
        seen["runs"][name] = counters(client)

    run("push_pcap", client.push_pcap, ipg_usec=100, count=3)
    client.reset(ports=PORTS)
    run("push_pcap_recorded", client.push_pcap, speedup=2.0, force=True)
    client.reset(ports=PORTS)
    run("push_remote", client.push_remote, ipg_usec=100, count=3)
    run("push_remote_recorded", client.push_remote, speedup=2.0, min_ipg_usec=10)
    content = Path(path).read_bytes()
    for name, spoilt in (("truncated", content[:-5]), ("empty", b""), ("no_capture", b"text" * 99)):
        Path(folder, f"{name}.pcap").write_bytes(spoilt)
        seen[name] = refusal(client.push_remote, f"{folder}/{name}.pcap", ports=[0], ipg_usec=10)
    seen["missing"] = refusal(client.push_remote, f"{folder}/nowhere.pcap", ports=[0], ipg_usec=10)
    run("after", client.push_remote, ipg_usec=100)
    return seen


def hosts(connect):
    """Two ports that know each other: resolved and pinged over IPv4, IPv6 and in VLANs."""
    client = in_service(connect)
    # As `set_l3_mode` would, without looking for the other port, which has no address yet.
    client.get_port(1).set_l3_mode(THEIRS, MINE)
    client.set_l3_mode(port=0, src_ipv4=MINE, dst_ipv4=THEIRS)
    client.resolve(ports=PORTS)
    seen = {"resolved": client.get_resolved_ports()}
    seen["gateway"] = client.get_port_attr(0)["dest"], client.get_port_attr(0)["arp"]

    def ping(address, **options):
        records = client.ping_ip(src_port=0, dst_ip=address, interval_sec=0.01, **options)
        replies = [one["formatted_string"] if isinstance(one, dict) else str(one) for one in records]
        return [re.sub(r"time=[\d.]+ms", "time", reply) for reply in replies]

    seen["ping"] = ping(THEIRS, count=3, pkt_size=1000)
    seen["nobody"] = ping("192.0.2.77", count=1, timeout_sec=0.2)
    client.set_vlan(ports=PORTS, vlan=[100, 200])
    client.resolve(ports=PORTS)
    seen["ping_vlans"] = ping(THEIRS, count=2)
    seen["vlan"] = client.get_port_attr(0)["vlan"]
    client.clear_vlan(ports=PORTS)
    for port, address in ((0, MINE6), (1, THEIRS6)):
        client.conf_ipv6(port=port, enabled=True, src_ipv6=address)
    seen["ping6"] = ping(THEIRS6, count=2)
    found = client.scan6(ports=[0], timeout=1)
    seen["scan6"] = sorted({one["ipv6"] for one in found[0]})
    client.conf_ipv6(port=1, enabled=False)
    context = client.create_service_ctx(port=0)
    services = [ServiceARP(context, dst_ip=THEIRS, src_ip=MINE), ServiceICMP(context, dst_ip=THEIRS)]
    context.run(services)
    seen["services"] = [str(service.get_record()).split(",")[0] for service in services]
    seen["map"] = client.map_ports(ports=PORTS)
    client.set_l2_mode(port=0, dst_mac="02:a1:05:00:00:77")
    seen["l2"] = client.get_port_attr(0)["dest"]
    client.set_l2_mode(port=1, dst_mac="02:a1:05:00:00:78")
    client.set_service_mode(ports=PORTS, enabled=False)
    seen["without_service"] = refusal(client.ping_ip, src_port=0, dst_ip=THEIRS)
    return seen


def queues(connect):
    """What a port receives is kept in a queue, and given to a socket of the client."""
    client = connected(connect)
    seen = {"without_service": refusal(client.set_rx_queue, ports=[1], size=10)}
    client.set_service_mode(ports=PORTS)
    client.set_rx_queue(ports=[1], size=8)
    client.push_packets([numbered(n) for n in range(12)], ports=[0])
    wait_until(lambda: client.get_stats()[1]["ipackets"] >= 12)
    port = client.get_port(1)
    seen["queue"] = numbers(port.get_rx_queue_pkts().data())
    seen["drained"] = len(port.get_rx_queue_pkts().data())
    client.remove_rx_queue(ports=[1])

    pair = zmq.Context().socket(zmq.PAIR)
    pair.setsockopt(zmq.RCVTIMEO, 10_000)
    number = pair.bind_to_random_port("tcp://127.0.0.1")
    client.start_capture_port(port=1, endpoint=f"tcp://127.0.0.1:{number}", bpf_filter="tcp dst port 80")
    client.push_packets([numbered(n, port=80 if n % 2 else 81) for n in range(6)], ports=[0])
    seen["capture_port"] = [struct.unpack("!I", pair.recv()[54:58])[0] for _ in range(3)]
    client.set_capture_port_bpf_filter(port=1, bpf_filter="tcp dst port 81")
    client.push_packets([numbered(n, port=80 if n % 2 else 81) for n in range(6)], ports=[0])
    seen["other_filter"] = [struct.unpack("!I", pair.recv()[54:58])[0] for _ in range(3)]
    capture = client.start_capture(rx_ports=[0])["id"]
    before = client.get_stats()[0]["ipackets"]
    for n in range(4):
        pair.send(bytes(numbered(n)))
    wait_until(lambda: client.get_stats()[0]["ipackets"] >= before + 4)
    sent = []
    client.stop_capture(capture, output=sent)
    seen["sent_by_socket"] = numbers(sent)
    client.stop_capture_port(port=1)
    pair.close(linger=0)
    client.set_service_mode(ports=PORTS, enabled=False)
    return seen


def texts(client):
    """What the client wrote down of the server's events."""
    return [event.msg for event in client.get_events() if event.origin == "server"]


def events(connect):
    """What two users hear of each other: acquisitions, runs, attributes, the end."""
    first, second = connect("first"), connect("second")
    first.reset(ports=PORTS)
    both = (first, second)
    wait_until(lambda: all(any("Port 1 was" in text for text in texts(one)) for one in both))
    first.clear_events()
    second.clear_events()
    first.add_streams(STLStream(packet=packet(), mode=STLTXSingleBurst(total_pkts=10, pps=1000)), ports=[0])
    first.add_streams(STLStream(packet=packet(), mode=STLTXCont(pps=100)), ports=[1])
    first.start(ports=[0])
    first.wait_on_traffic(ports=[0])
    first.start(ports=[1])
    first.pause(ports=[1])
    first.resume(ports=[1])
    first.stop(ports=[1])
    first.set_port_attr(ports=[0], promiscuous=True)
    second.acquire(ports=[1], force=True)
    second.release(ports=[1])
    first.release(ports=[0])
    wait_until(lambda: all(any("Port 0 was released" in text for text in texts(one)) for one in both))
    warnings = [event.msg for event in first.get_warnings()]
    return {"first": texts(first), "second": texts(second), "warnings": warnings}


def reader(connect):
    """Who takes no port sees everything and changes nothing."""
    owner, reader = connect("owner"), connect("reader")
    owner.reset(ports=PORTS)
    owner.add_streams(STLStream(packet=packet(), mode=STLTXCont(pps=1000)), ports=[0])
    seen = {"refused": [refusal(reader.start, ports=[0]), refusal(reader.remove_all_streams, ports=[0])]}
    owner.start(ports=[0])
    wait_until(lambda: reader.get_active_ports(owned=False) == [0])
    seen["active"] = reader.get_active_ports(owned=False)
    wait_until(lambda: reader.get_stats(ports=PORTS)[0]["opackets"] > 100)
    seen["counts"] = reader.get_stats(ports=PORTS)[0]["opackets"] > 100
    seen["stop_refused"] = refusal(reader.stop, ports=[0])
    owner.stop(ports=[0])
    wait_until(lambda: reader.get_active_ports(owned=False) == [])
    seen["active_after"] = reader.get_active_ports(owned=False)
    seen["warnings"] = [event.msg for event in reader.get_warnings()]
    return seen


def config(connect):
    """TRex's switches of the scheduler are kept."""
    client = connect("itay")
    before = client.get_global_cfg()
    client.set_global_cfg({"sched_max_stretch": 200.0, "process_at_cp": True})
    return {"before": before, "after": client.get_global_cfg()}


def server_ends(connect):
    """The server is shut down by a user; both hear of it."""
    first, second = connect("first"), connect("second")
    first.server_shutdown(force=True)
    ended = [wait_until(lambda one=one: not one.is_connected()) for one in (first, second)]
    return {"ended": ended, "texts": [texts(one) for one in (first, second)]}


SCENARIOS = (captures, files, hosts, queues, events, reader, config, server_ends)
