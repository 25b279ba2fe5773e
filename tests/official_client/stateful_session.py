"""Drive a server with a stateful client, TRex's or ours, and print what it saw as one JSON object.

In the official client's own environment `trex` is TRex's, in ours it is ours: the calls are the same. They
are those of a usual automation script.

usage: stateful_session.py SCENARIO HOST RPC_PORT PUB_PORT
"""

# ruff: noqa: I001  # the order of imports matters here
import contextlib
import io
import json
import logging
import sys

try:
    import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
    import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
except ImportError:
    pass  # Ours needs neither.
from trex.astf.api import (
    ASTFAssociationRule,
    ASTFClient,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
    TRexError,
)
from trex.astf.topo import ASTFTopology, TopoGW, TopoVIF


def profile(size=32_000, groups=(None,)):
    """HTTP of a size, a template for each group."""
    ip_gen = ASTFIPGen(
        dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
        dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
    )
    client, server = ASTFProgram(), ASTFProgram()
    client.send(b"GET / HTTP/1.1\r\n\r\n")
    client.recv(size)
    server.recv(18)
    server.send(b"*" * size)
    templates = [
        ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=80 + number, cps=2),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(80 + number)),
            tg_name=name,
        )
        for number, name in enumerate(groups)
    ]
    return ASTFProfile(default_ip_gen=ip_gen, templates=templates)


def refusal(call, *arguments, **named):
    """Whether a call is refused."""
    try:
        call(*arguments, **named)
        return False
    except TRexError:
        return True


def one_run(client):
    """Load, start, change the rate, read, stop, start again, and clear."""
    client.load_profile(profile())
    client.clear_stats()
    client.start(mult=10, duration=-1)
    states = [client.get_profiles_state()]
    client.update(20)
    stats = client.get_stats()
    errors = client.is_traffic_stats_error(stats["traffic"])
    client.stop()
    states.append(client.get_profiles_state())
    client.start(mult=1, duration=5, nc=True, ipv6=True, client_mask=1, e_duration=1, t_duration=2)
    client.stop()
    client.clear_profile()
    states.append(client.get_profiles_state())
    return {"states": states, "traffic": stats["traffic"], "errors": errors, "keys": sorted(map(str, stats))}


def many_profiles(client):
    """Two profiles side by side; one that is loaded twice; names that are not there."""
    for name in ("one", "two"):
        client.load_profile(profile(len(name) * 5000), pid_input=name)
    client.load_profile(profile(15_000), pid_input="one")
    for name in ("one", "two"):
        client.start(pid_input=name, mult=3)
    client.update(5, pid_input="two")
    seen = {
        "profiles": client.get_profiles(),
        "started_twice": refusal(client.start, pid_input="one"),
        "no_such": refusal(client.update, 2, pid_input="nobody"),
        "all_at_once": refusal(client.start, pid_input="*"),
        "sum": client.get_traffic_stats(is_sum=True),
        "one": client.get_traffic_stats(pid_input="one", skip_zero=False),
    }
    client.stop(pid_input="one")
    seen["half"] = client.get_profiles_state()
    client.stop(pid_input="*", is_remove=True)
    return {**seen, "left": client.get_profiles_state()}


def template_groups(client):
    """Counters of groups, twelve of them: more than one request may ask for."""
    names = [f"group {number}" for number in range(12)]
    client.load_profile(profile(groups=names))
    client.start()
    seen = {
        "names": client.get_tg_names(),
        "stats": client.get_traffic_tg_stats(names),
        "one": client.get_traffic_tg_stats("group 3", skip_zero=False),
        "dynamic": client.get_dynamic_traffic_stats(is_sum=True),
    }
    client.stop()
    return seen


def beside_the_traffic(client):
    """Latency, addresses, clients, service mode, distribution, flow information."""
    client.start_latency(mult=50, src_ipv4="16.0.0.7", dst_ipv4="48.0.0.7", ports_mask=3)
    client.update_latency(70)
    seen = {"latency": client.get_latency_stats()}
    client.stop_latency()
    client.set_ignored_macs_ips(mac_list=["02:00:00:00:00:99"], ip_list=["16.0.0.9"])
    seen["ignored"] = client.get_ignored_macs_ips()
    client.set_ignored_macs_ips()
    client.set_client_enable([0x10000001, 0x10000002], False)
    client.set_client_enable_range(0x10000001, 0x10000009, True)
    seen["distribution"] = client.get_traffic_distribution("16.0.0.0", "16.0.0.255", "1.0.0.0", False)
    seen["flows"] = client.get_flow_info(index=0)
    client.set_service_mode(enabled=True)
    client.set_service_mode(enabled=False, filtered=True, mask=1)
    client.set_service_mode(enabled=False)
    seen["tunnels"] = [client.is_tunnel_supported(), refusal(client.activate_tunnel)]
    return seen


def network(client):
    """A topology with its MAC addresses known."""
    vifs = [TopoVIF("0.1", "02:00:00:00:01:01", "192.0.2.1", "", 7)]
    gateways = [
        TopoGW("0.1", "16.0.0.1", "16.0.0.9", "00:00:00:01:00:02"),
        TopoGW("0", "16.0.0.10", "16.0.0.20", "00:00:00:01:00:03"),
    ]
    client.topo_load(ASTFTopology(vifs=vifs, gws=gateways))
    seen = {"twice": refusal(client.topo_load, ASTFTopology(vifs=vifs))}
    client.topo_resolve()
    client.topo_clear()
    return seen


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (one_run, many_profiles, template_groups, beside_the_traffic, network)
}


def main():
    """Connect, reset, run one scenario, disconnect."""
    name, host, rpc_port, pub_port = sys.argv[1:5]
    logging.disable(logging.CRITICAL)
    client = ASTFClient(
        username="itay",
        server=host,
        sync_port=int(rpc_port),
        async_port=int(pub_port),
        verbose_level="critical",
    )
    with contextlib.redirect_stdout(io.StringIO()):
        client.connect()
        try:
            client.reset()
            seen = SCENARIOS[name](client)
        finally:
            client.disconnect()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
