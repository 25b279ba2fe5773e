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
import time

try:
    import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
    import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
except ImportError:
    pass  # Ours needs neither.
from trex.astf.api import (
    ASTFAssociationRule,
    ASTFClient,
    ASTFGlobalInfo,
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


def profile(size=32_000, groups=(None,), port=80):
    """HTTP of a size, a template for each group, from a port on."""
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
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen, port=port + number, cps=2),
            server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port + number)),
            tg_name=name,
        )
        for number, name in enumerate(groups)
    ]
    info = ASTFGlobalInfo()
    # Without delayed acknowledgments a machine that stands still for long looks not like loss.
    info.tcp.no_delay_counter = 1
    return ASTFProfile(
        default_ip_gen=ip_gen, default_c_glob_info=info, default_s_glob_info=info, templates=templates
    )


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
    for number, name in enumerate(("one", "two")):
        client.load_profile(profile(15_000, port=80 + number), pid_input=name)
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


# The scenarios below need a server that really sends.


def whole_runs(client):
    """Runs with an end: what both sides counted, in all, by profile and by group; and again after a clear."""
    names = ["first", "second"]
    client.load_profile(profile(groups=names))
    client.clear_stats()
    client.start(mult=50, duration=1)
    states = client.get_profiles_state()
    client.wait_on_traffic()
    stats = client.get_stats()
    seen = {
        "states": [states, client.get_profiles_state()],
        "ports": [stats[0]["opackets"], stats[1]["ipackets"]],
        "traffic": stats["traffic"],
        "errors": client.is_traffic_stats_error(stats["traffic"]),
        "sum": client.get_traffic_stats(is_sum=True),
        "names": client.get_tg_names(),
        "groups": client.get_traffic_tg_stats(names),
        "dynamic": client.get_dynamic_traffic_stats(),
        "all": sorted(client.get_traffic_stats(skip_zero=False)["client"]),
        "warnings": [str(warning) for warning in client.get_warnings()],
    }
    client.clear_stats()
    seen["cleared"] = client.get_stats()["traffic"]
    client.clear_profile()
    client.load_profile(profile(5000))
    client.start(mult=20, duration=0.5, nc=True)
    client.wait_on_traffic()
    return {**seen, "again": client.get_traffic_stats()}


def changes_while_it_runs(client):
    """The rate is raised, clients rest, flows are recorded, echo requests are sent, and all is stopped."""
    client.load_profile(profile())
    client.start(mult=5, latency_pps=100, dump_interval=0.1)
    seen = {"slow": grown(client)}
    client.update(50)
    seen["fast"] = grown(client, 100)
    seen["latency"] = eventually(
        client.get_latency_stats, lambda stats: stats.get(0, {}).get("stats", {}).get("m_pkt_ok", 0) > 5
    )[0]
    seen["flows"] = client.get_flow_info(index=0)
    everybody = (ip_number("16.0.0.1"), ip_number("16.0.0.254"))
    client.set_client_enable_range(*everybody, False)
    client.set_client_enable_range(*everybody, True)
    seen["clients"] = client.get_clients_info_range(ip_number("16.0.0.1"), ip_number("16.0.0.2")).data()
    seen["works_again"] = grown(client, 20)
    client.stop()
    return {**seen, "state": client.get_profiles_state(), "errors": errors_of(client)}


def side_by_side(client):
    """Two profiles on ports of their own; one is stopped, the other goes on; streams beside them."""
    for number, name in enumerate(("one", "two")):
        client.load_profile(profile(1000 * (number + 1), port=8000 + number), pid_input=name)
    client.start(pid_input="one", mult=20)
    client.start(pid_input="two", mult=20)
    for name in ("one", "two"):
        grown(client, 10, name)
    seen = {"both": client.get_profiles_state(), "names": client.get_profiles()}
    client.stop(pid_input="one")
    seen["half"] = client.get_profiles_state()
    grown(client, 10, "two")
    client.stop(pid_input="*", is_remove=True)
    return {**seen, "left": client.get_profiles_state()}


def service(client):
    """Service mode with its filters beside traffic, and captures."""
    client.load_profile(profile())
    client.start(mult=10)
    client.set_service_mode(enabled=False, filtered=True, mask=1)
    seen = {"filtered": client.get_port_attr(0)["prom"]}
    client.set_service_mode(enabled=False)
    client.stop()
    client.set_service_mode(enabled=True)
    client.start_capture(rx_ports=[0, 1], limit=100)
    client.set_service_mode(enabled=False)
    return seen


def ip_number(text):
    """An IPv4 address as a number."""
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


def eventually(read, is_good):
    """Read until it is good; give up after a time that is far too long."""
    until = time.monotonic() + 60
    while not is_good(value := read()):
        if time.monotonic() > until:
            raise SystemExit(f"it does not come: {value}")
        time.sleep(0.05)
    return value


def grown(client, more=1, pid="_"):
    """Wait for more connections."""

    def connects():
        return client.get_traffic_stats(pid_input=pid)["client"].get("tcps_connects", 0)

    before = connects()
    return eventually(connects, lambda now: now >= before + more) - before


def errors_of(client):
    """Which counters of errors have grown."""
    return client.is_traffic_stats_error(client.get_traffic_stats())[1]


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        *(one_run, many_profiles, template_groups, beside_the_traffic, network),
        *(whole_runs, changes_while_it_runs, side_by_side, service),
    )
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
