"""The arithmetic of a plan: what a target takes, and what this machine gives at most."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from allosaur.cli._options import Target
from allosaur.cli.plan._costs import Costs
from allosaur.cli.plan._load import PORTS_OF_ADDRESS, Load

FLOWS_MAX = 67_108_864
"""Ends that a server takes at most, by `flows_max` of its configuration."""
FLOWS_USUAL = 2_097_152


@dataclass(frozen=True)
class Machine:
    """What there is."""

    cores: int
    """For data threads: one CPU less than there are, for the other threads."""
    memory_bytes: float
    ports: int
    nic_bps: float
    headroom: float
    """The part of a core that stays free."""


@dataclass(frozen=True)
class Limit:
    """Something that there is only so much of."""

    name: str
    most: float
    """Units a second that it gives at most."""
    remedy: str


@dataclass(frozen=True)
class Plan:
    """What a target takes."""

    rate: float
    """Flows or packets a second."""
    unit_ns: float
    """What one takes of a core."""
    cores: int
    busy_cores: float
    ports: int
    queues: int
    """Of each port, each way."""
    bits_to_servers: float
    """A second at layer 1."""
    bits_to_clients: float
    packets: float
    open_ends: float
    time_wait_ends: float
    memory_bytes: float
    limits: tuple[Limit, ...]
    """Of this machine, the one that comes first first."""

    @property
    def first(self) -> Limit:
        """What limits first."""
        return self.limits[0]

    @property
    def ends(self) -> float:
        """Ends of flows at a time, which the flow table has places for."""
        return self.open_ends + self.time_wait_ends

    def to_json(self, of_rate: Callable[[float], float]) -> dict[str, Any]:
        """Return the plan as plain data; `of_rate` turns flows or packets a second into the target's unit."""
        return {
            "rate": self.rate,
            "cpu_ns": self.unit_ns,
            "cores": self.cores,
            "busy_cores": self.busy_cores,
            "ports": self.ports,
            "queues": self.queues,
            "bps_l1_to_servers": self.bits_to_servers,
            "bps_l1_to_clients": self.bits_to_clients,
            "pps": self.packets,
            "open_ends": self.open_ends,
            "time_wait_ends": self.time_wait_ends,
            "memory_bytes": self.memory_bytes,
            "limits": [
                {
                    "name": one.name,
                    "rate_max": one.most,
                    "target_max": of_rate(one.most),
                    "remedy": one.remedy,
                }
                for one in self.limits
            ],
        }


def rate_of(target: Target, load: Load) -> float:
    """Return the flows or packets a second that a target means; bits and packets are of the heavier way."""
    return target.value / per_unit(target.unit, load)


def per_unit(unit: str, load: Load) -> float:
    """Return how much of the target's unit a flow or packet is."""
    way = load.heavier
    return {"cps": 1.0, "pps": way.packets, "bps": way.bits(2), "bpsl1": way.bits(1)}[unit]


def made(rate: float, load: Load, costs: Costs, machine: Machine) -> Plan:
    """Return what so many flows or packets a second take."""
    ns, usable = costs.unit_ns(load), 1 - machine.headroom
    busy = rate * ns / 1e9
    cores = max(math.ceil(busy / usable), 1)
    # Ports of flows are pairs: clients on the one, servers on the other.
    step = 2 if load.unit == "flow" else 1
    groups = max(math.ceil(rate * load.heavier.bits(1) / machine.nic_bps), 1)
    return Plan(
        rate=rate,
        unit_ns=ns,
        cores=cores,
        busy_cores=busy,
        ports=step * groups,
        queues=math.ceil(cores / groups),
        bits_to_servers=rate * load.to_servers.bits(1),
        bits_to_clients=rate * load.to_clients.bits(1),
        packets=rate * load.packets,
        open_ends=rate * load.open_ends,
        time_wait_ends=rate * load.time_wait_ends,
        memory_bytes=(costs.base_bytes or 0.0) + rate * costs.flow_bytes(load),
        limits=tuple(sorted(_limits(load, costs, machine), key=lambda one: one.most)),
    )


def _limits(load: Load, costs: Costs, machine: Machine) -> list[Limit]:
    usable = 1 - machine.headroom
    step = 2 if load.unit == "flow" else 1
    link_bps = max(machine.ports // step, 1) * machine.nic_bps
    found = [
        Limit("cores", machine.cores * usable * 1e9 / costs.unit_ns(load), "more cores"),
        Limit("ports", link_bps / load.heavier.bits(1), "more ports, or faster ones"),
    ]
    if load.ends and costs.bytes_per_end:
        free = max(machine.memory_bytes - (costs.base_bytes or 0.0), 0.0)
        found.append(Limit("memory", free / costs.flow_bytes(load), "more memory, or shorter flows"))
        found.append(Limit("flow table", FLOWS_MAX / load.ends, "a second server"))
    if load.client_ends:
        tuples = load.client_addresses * PORTS_OF_ADDRESS
        found.append(
            Limit("client addresses", tuples / load.client_ends, "more client addresses in the profile")
        )
    return found
