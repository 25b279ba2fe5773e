"""Emulated clients run programs of stateful profiles with each other, and with sockets of Linux."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import Any

from allosaur.server import LocalServer

REQUEST = bytes(range(256)) * 20
RESPONSE = bytes(reversed(range(256))) * 60
FLOWS = 40
"""Flows of each client."""
CLIENTS = 5
GATEWAY = "10.1.255.254"

# Takes connections: compares what comes, answers, and waits for the end. Prints how many were right.
SERVER = """
import json, socket, sys
port, flows, request, response = int(sys.argv[1]), int(sys.argv[2]), *map(bytes.fromhex, sys.argv[3:])
line = socket.create_server(("0.0.0.0", port), backlog=1000)
line.settimeout(60)
print("ready", flush=True)
right = 0
for _ in range(flows):
    flow, _ = line.accept()
    flow.settimeout(60)
    got = b""
    while len(got) < len(request):
        piece = flow.recv(65536)
        if not piece:
            break
        got += piece
    flow.sendall(response)
    flow.shutdown(socket.SHUT_WR)
    right += got == request and flow.recv(1) == b""
    flow.close()
print(json.dumps(right))
"""

# Asks servers for connections, one after the other, and compares what they answer.
CLIENT = """
import json, socket, sys
port, flows, request, response = int(sys.argv[1]), int(sys.argv[2]), *map(bytes.fromhex, sys.argv[3:5])
right = 0
for _ in range(flows):
    for host in sys.argv[5:]:
        with socket.create_connection((host, port), timeout=60) as flow:
            flow.sendall(request)
            got = b""
            while True:
                piece = flow.recv(65536)
                if not piece:
                    break
                got += piece
            right += got == response
print(json.dumps(right))
"""


def program(port: int) -> dict[str, Any]:
    """A request and its response."""
    return {
        "buf_list": [base64.b64encode(data).decode() for data in (REQUEST, RESPONSE)],
        "program_list": [
            {"commands": [{"name": "tx", "buf_index": 0}, {"name": "rx", "min_bytes": len(RESPONSE)}]},
            {"commands": [{"name": "rx", "min_bytes": len(REQUEST)}, {"name": "tx", "buf_index": 1}]},
        ],
        "templates": [
            {
                "client_template": {"program_index": 0},
                "server_template": {"assoc": [{"port": port}], "program_index": 1},
            }
        ],
    }


def stream(role: str, destination: str) -> dict[str, Any]:
    """The plugins of a client with one stream over TCP."""
    record = {"cps": 100.0, "t": role, "tid": 0, "stream": True, "dst": destination, "limit": FLOWS}
    return {"arp": {}, "icmp": {}, "transport": {}, "appsim": {"data": {"web": record}}}


def wire(network: Any) -> tuple[str, str]:
    """A namespace with an address that clients have for their gateway, and our end of the wire to it."""
    host = network.namespace("host")
    near, far = network.veth(host)
    network.run(host, "ip", "address", "add", f"{GATEWAY}/16", "dev", far)
    # Else the kernel leaves checksums to a network card that there is not.
    network.run(host, "ethtool", "-K", far, "tx", "off")
    return host, near


def test_clients_ask_servers_of_another_port(door: Any, doors: Any) -> None:
    near, far = (door.add_namespace(port, arp={}, appsim=program(8080)) for port in (0, 1))
    door.add_clients(far, [2], gateway=doors.ipv4(1), **stream("s", ""))
    door.add_clients(near, [1], gateway=doors.ipv4(2), **stream("c", f"{doors.ipv4(2)}:8080"))
    found = door.await_counter("delFlow", FLOWS, "appsim_client_cnt", tun=near, mac=doors.mac(1))
    assert found["bytesTx"] == FLOWS * len(REQUEST)
    assert found["bytesRx"] == FLOWS * len(RESPONSE)
    assert "DropConnection" not in found


def test_clients_ask_a_socket_of_linux(network: Any, doors: Any) -> None:
    host, near = wire(network)
    flows = CLIENTS * FLOWS
    words = [
        "ip",
        "netns",
        "exec",
        host,
        sys.executable,
        "-c",
        SERVER,
        "9001",
        str(flows),
        REQUEST.hex(),
        RESPONSE.hex(),
    ]
    with (
        LocalServer(ports=[f"af_packet:{near}"], emu=True) as server,
        doors.Door(server.emu_port) as door,
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as listener,
    ):
        assert listener.stdout is not None
        assert listener.stdout.readline().strip() == "ready"
        tunnel = door.add_namespace(0, arp={}, icmp={}, appsim=program(80))
        plugins = stream("c", f"{GATEWAY}:9001")
        door.add_clients(tunnel, range(1, CLIENTS + 1), gateway=GATEWAY, **plugins)
        for number in range(1, CLIENTS + 1):
            who = {"tun": tunnel, "mac": doors.mac(number)}
            found = door.await_counter("delFlow", FLOWS, "appsim_client_cnt", **who)
            assert found["bytesRx"] == FLOWS * len(RESPONSE), found
            assert "DropConnection" not in found, found
        assert json.loads(listener.stdout.readline()) == flows


def test_linux_asks_servers_among_them(network: Any, doors: Any) -> None:
    host, near = wire(network)
    with (
        LocalServer(ports=[f"af_packet:{near}"], emu=True) as server,
        doors.Door(server.emu_port) as door,
    ):
        tunnel = door.add_namespace(0, arp={}, icmp={}, appsim=program(8080))
        door.add_clients(tunnel, range(1, CLIENTS + 1), gateway=GATEWAY, **stream("s", ""))
        for number in range(1, CLIENTS + 1):
            who = {"tun": tunnel, "macs": [doors.mac(number)]}
            doors.await_it(
                lambda who=who: any(door.call("ctx_client_get_info", **who)[0]["dgw"]["rmac"]),
                f"client {number} never found its gateway",
            )
        hosts = [doors.ipv4(number) for number in range(1, CLIENTS + 1)]
        words = [sys.executable, "-c", CLIENT, "8080", "4", REQUEST.hex(), RESPONSE.hex(), *hosts]
        assert json.loads(network.run(host, *words)) == 4 * CLIENTS
