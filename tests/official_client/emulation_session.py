"""Drive the emulated clients of a server with TRex's EMU client, and print what it saw as one JSON object.

It runs in the official client's own environment. The calls are those of a usual automation script.

usage: emulation_session.py SCENARIO HOST EMU_PORT
"""

# ruff: noqa: I001  # the order of imports matters here
import contextlib
import io
import json
import sys
import time

import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
from trex.emu.api import (
    EMUClient,
    EMUClientKey,
    EMUClientObj,
    EMUNamespaceKey,
    EMUNamespaceObj,
    EMUProfile,
    Ipv4,
    Mac,
    TRexError,
)

CLIENTS = 600
"""More than the client sends in one request, so it sends several."""
PATIENCE_S = 30.0


def await_it(look):
    """Look until there is something to see, and give it."""
    until = time.monotonic() + PATIENCE_S
    while not (seen := look()) and time.monotonic() < until:
        time.sleep(0.01)
    return seen


def namespace(port, first, gateway):
    """Clients of a port, with addresses one after the other."""
    mac, address = Mac(first[0]), Ipv4(first[1])
    plugins = {"arp": {}}
    clients = [
        EMUClientObj(mac=mac[i].V(), ipv4=address[i].V(), ipv4_dg=Ipv4(gateway).V(), plugs=plugins)
        for i in range(CLIENTS)
    ]
    return EMUNamespaceObj(
        ns_key=EMUNamespaceKey(vport=port), clients=clients, plugs=plugins, def_c_plugs={"arp": {}}
    )


NEAR = ("00:00:00:70:00:01", "10.1.0.1")
FAR = ("00:00:00:71:00:01", "10.1.128.1")


def profile():
    """Clients on both ports; those of each have the first of the other for their gateway."""
    return EMUProfile(ns=[namespace(0, NEAR, FAR[1]), namespace(1, FAR, NEAR[1])], def_ns_plugs={"arp": {}})


def value(counters, name):
    """A counter's value, in a list that has its help and unit too."""
    return next(counter["value"] for counter in counters if counter["name"] == name and counter["help"])


def a_profile(client):
    """Load a profile, look at all of it, read and clear counters, and remove it."""
    client.load_profile(profile())
    namespaces = sorted(client.get_all_ns_and_clients(), key=lambda one: one["vport"])
    near, far = (EMUNamespaceKey(vport=port) for port in (0, 1))
    one = EMUClientKey(far, Mac(FAR[0]).V())
    await_it(lambda: client.get_info_clients([one])[0]["dgw"]["rmac"] == NEAR[0])
    info = client.get_info_clients([one])[0]
    seen = {
        "ports": [namespace["vport"] for namespace in namespaces],
        "clients": [len(namespace["clients"]) for namespace in namespaces],
        "plugins": sorted(name.strip() for name in info["plug_names"].split(",")),
        "address": info["ipv4"],
        "gateway": info["dgw"],
        "replied": value(client.arp.get_counters(near)["arp"], "pktTxReply") > 0,
        "cache": [(bytes(entry["ipv4"]).hex(), entry["state"]) for entry in client.arp.show_cache(far)],
        "sent": client.get_counters()["veth"]["TxPkts"] > 0,
    }
    client.arp.clear_counters(near)
    seen["cleared"] = value(client.arp.get_counters(near)["arp"], "addIncomplete")
    client.remove_profile()
    seen["left"] = len(client.get_all_ns_and_clients())
    return seen


def piece_by_piece(client):
    """Add and remove namespaces and clients one by one; what is wrong is refused."""
    key = EMUNamespaceKey(vport=0, tci=[1, 2], tpid=[0x88A8, 0x8100])
    client.add_ns([EMUNamespaceObj(ns_key=key, plugs={"arp": {}})])
    refused = []
    for wrong in (
        lambda: client.add_ns([EMUNamespaceObj(ns_key=key)]),
        lambda: client.remove_ns([EMUNamespaceKey(vport=1)]),
        lambda: client.add_clients(EMUNamespaceKey(vport=1), [EMUClientObj(mac=Mac(NEAR[0]).V())]),
    ):
        try:
            wrong()
            refused.append(False)
        except TRexError:
            refused.append(True)
    client.set_def_c_plugs(key, {"arp": {"timer": 30}})
    client.add_clients(key, [EMUClientObj(mac=Mac(NEAR[0])[i].V()) for i in range(3)])
    client.remove_clients([EMUClientKey(key, Mac(NEAR[0])[1].V())], max_rate=None)
    left = client.get_all_clients_for_ns(key)
    seen = {
        "refused": refused,
        "left": len(left),
        "plugins": client.get_info_clients(left)[0]["plug_names"],
        "mode": client.get_server_version()["mode"],
    }
    client.remove_all_clients_and_ns()
    seen["namespaces"] = len(client.get_all_ns_and_clients())
    return seen


def main():
    """Run a scenario."""
    name, host, port = sys.argv[1:]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        client = EMUClient(server=host, sync_port=int(port))
        client.connect()
        try:
            seen = {"a_profile": a_profile, "piece_by_piece": piece_by_piece}[name](client)
        finally:
            client.disconnect()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
