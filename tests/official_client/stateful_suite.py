"""What TRex's own regression tests of stateful mode do, by the same calls, with TRex's official client.

Each scenario is one test of TRex's suite, in our words; prints what it saw as one JSON object.

usage: stateful_suite.py SCENARIO HOST RPC_PORT PUB_PORT
"""

import sys

import stateful_session
from stateful_session import eventually, profile, refusal
from trex.astf.api import (
    ASTFAssociationRule,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFIPGenGlobal,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)
from trex.astf.topo import ASTFTopology

VLAN = 30
PACKETS = 20
MANY = 200


def same_text_twice(client):
    """test_double_start_stop_dynamic_profile: a profile that is refused for its text is known by its name."""
    client.load_profile(profile(), pid_input="first")
    client.start(duration=20, pid_input="first")
    seen = {"refused": refusal(client.load_profile, profile(), pid_input="second")}
    client.stop(pid_input="first")
    client.stop(pid_input="second")
    return {**seen, "names": sorted(client.get_profiles())}


def profiles_one_after_another(client):
    """test_astf_template_group_edge_cases_dynamic_profile: what has ended serves no more flows."""
    client.load_profile(profile(groups=[None, "A"], port=80), pid_input="before")
    client.start(duration=1, mult=20, pid_input="before")
    client.wait_on_traffic()
    before = client.get_traffic_stats(pid_input="before")
    # Port 81 is of both.
    client.load_profile(profile(groups=["A", "B"], port=81), pid_input="after")
    client.clear_stats(pid_input="*")
    client.start(duration=1, mult=20, pid_input="after")
    client.wait_on_traffic()
    return {
        "before": before["server"]["tcps_accepts"],
        "first": client.get_traffic_stats(pid_input="before")["server"].get("tcps_accepts", 0),
        "groups": client.get_traffic_tg_stats(["A", "B"], pid_input="after"),
    }


def messages():
    """A question and an answer over UDP, from addresses that a capture looks for."""
    client, server = ASTFProgram(stream=False), ASTFProgram(stream=False)
    client.send_msg("req")
    client.recv_msg(1)
    server.recv_msg(1)
    server.send_msg("resp")
    ip_gen = ASTFIPGen(
        glob=ASTFIPGenGlobal(ip_offset="0.0.0.0"),
        dist_client=ASTFIPGenDist(["123.123.123.1", "123.123.123.250"], distribution="seq"),
        dist_server=ASTFIPGenDist(["48.0.0.0", "48.0.255.255"], distribution="seq"),
    )
    template = ASTFTemplate(
        client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
        server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=80)),
    )
    return ASTFProfile(default_ip_gen=ip_gen, templates=template)


def tagged_traffic(client):
    """test_traffic_vlan and its named form: flows leave in the VLAN, IPv6 ones from `::a.b.c.d`."""
    seen = {}
    for pid in ("_", "named"):
        client.load_profile(messages(), pid_input=pid)
        for is_ipv6, addresses in (
            (False, "ip src net 123.123.123.0/24"),
            (True, "ip6 src net ::123.123.123.0/120"),
        ):
            for tagged in (False, True):
                set_vlans(client, [0, 1] if tagged else [])
                wanted = f"vlan {VLAN} and {addresses}" if tagged else addresses
                capture = client.start_capture(rx_ports=1, limit=PACKETS, bpf_filter=wanted)["id"]
                client.start(mult=1000, pid_input=pid, ipv6=is_ipv6)
                try:
                    eventually(
                        lambda capture=capture: client.get_capture_status()[capture]["matched"],
                        lambda matched: matched >= PACKETS,
                    )
                    came = True
                except SystemExit:
                    came = False
                client.stop(pid_input=pid)
                client.stop_capture(capture)
                seen[f"{pid} {is_ipv6} {tagged}"] = came
        client.clear_profile(pid_input=pid)
    client.clear_vlan([0, 1])
    return seen


def set_vlans(client, tagged):
    """Put these ports into the VLAN, and the others out of it."""
    for port in (0, 1):
        if port in tagged:
            client.set_vlan(port, VLAN)
        else:
            client.clear_vlan(port)


def ping_in_vlans(client):
    """test_ping_vlan: ping is answered without service mode, and only in the same VLAN."""
    address = client.get_port(1).get_layer_cfg()["ipv4"]["src"]
    seen = []
    for tagged in ([], [0], [0, 1], [1]):
        set_vlans(client, tagged)
        is_same = len(tagged) != 1
        record = client.ping_ip(0, address, count=1, timeout_sec=20 if is_same else 0.5)[0]
        seen.append(record.state == record.SUCCESS)
    client.clear_vlan([0, 1])
    return seen


def tags_that_are_refused(client):
    """test_config_vlan: tags out of range, and two of them."""
    return [refusal(client.set_vlan, 0, tags) for tags in ([5000], [-1], [12, 13], [12])]


def many_profiles(client):
    """test_stress_start_stop_dynamic_profile: load and start one after another, stop all."""
    count = int(sys.argv[5]) if len(sys.argv) > 5 else MANY
    for number in range(count):
        client.load_profile(profile(100, port=9000 + number), pid_input=f"p{number}")
        client.start(duration=-1, pid_input=f"p{number}")
    running = list(client.get_profiles_state().values()).count("STATE_TX")
    counted = eventually(lambda: active(client), lambda flows: flows >= count)
    client.stop(pid_input="*")
    stopped = list(client.get_profiles_state().values()).count("STATE_ASTF_LOADED")
    client.reset()
    return {
        "count": count,
        "running": running,
        "flows": counted,
        "stopped": stopped,
        "left": client.get_profiles(),
    }


def active(client):
    """Connections of all profiles since the start."""
    return client.get_traffic_stats(is_sum=True)["client"].get("tcps_connects", 0)


def virtual_interfaces(client):
    """test_topo_resolve: replies to a virtual MAC reach a promiscuous port only."""
    layers = client.get_port(0).get_layer_cfg()["ipv4"]
    topology = ASTFTopology()
    topology.add_vif("0.2", "12:12:12:12:12:12", src_ipv4=layers["src"])
    topology.add_gw("0.2", "16.0.0.0", "16.0.0.1", layers["dst"])
    topology.add_gw("0.2", "18.0.0.0", "18.0.0.1", "12:12:12:12:12:12")
    client.topo_clear()
    client.topo_load(topology)
    seen = []
    for promiscuous in (False, True):
        client.set_port_attr(promiscuous=promiscuous)
        seen.append(refusal(client.topo_resolve, 0))
    topology.add_gw("0", "21.0.0.0", "21.0.0.1", "200.200.200.200")
    client.topo_clear()
    client.topo_load(topology)
    seen.append(refusal(client.topo_resolve, 0))
    client.topo_clear()
    client.set_port_attr(promiscuous=False)
    return seen


stateful_session.SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        *(same_text_twice, profiles_one_after_another, tagged_traffic, ping_in_vlans),
        *(tags_that_are_refused, many_profiles, virtual_interfaces),
    )
}

if __name__ == "__main__":
    stateful_session.main()
