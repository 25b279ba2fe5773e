"""TRex's official client with a device between the ports."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from allosaur.server import LocalServer


def test_the_official_client_counts_what_a_nat_forwarded(
    network: Any, devices: ModuleType, run_on: Any
) -> None:
    nat = devices.Nat(network, forwards={8080: "10.0.0.2:80"})
    with LocalServer(ports=nat.ports) as server:
        seen = run_on(server, "nat")
    assert seen["gateways"] == [nat.mac(0), nat.mac(1)]
    assert seen["groups"] == {"1": [2000, 2000], "2": [2000, 2000], "3": [500, 500], "4": [2000, 2000]}
    assert (seen["errors"], seen["highest"] > 0) == (0, True)
    kernel = nat.counters()
    assert kernel["invalid"] == 0
    # Beside the streams there are one ping, and its answer.
    assert (kernel["in0"], kernel["out1"], kernel["in1"], kernel["out0"]) == (4_501, 4_500, 2_000, 2_001)
    assert nat.connection_count() >= 4
