"""Fixtures of all black-box tests: servers of the real binary, networks and devices of the kernel, data."""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_timeout
from _pytest.runner import runtestprotocol
from allosaur.server import LocalServer

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "data"
LISTINGS = ROOT.parent / "shared" / "data" / "listings"


@pytest.fixture
def server(fits_the_schema: None) -> Iterator[LocalServer]:
    """A server with two in-memory ports that are linked to each other, on free TCP ports of loopback."""
    with LocalServer(ports=["memory", "memory"], cores=1, options=["--captures-folder", "/"]) as running:
        yield running


@pytest.fixture(scope="session")
def rpc_schema() -> Any:
    """The schema of the RPC (see rpc_schema.py)."""
    return _module("rpc_schema", "").RpcSchema()


@pytest.fixture
def fits_the_schema(rpc_schema: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test in which a request of ours or a server's reply is not what the schema says."""
    watch = rpc_schema.watch(monkeypatch)
    yield
    assert watch.misfits == []


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The recorded data, a part of the project; its README says what there is. Tests fail without it."""
    assert RECORDED.is_dir(), f"{RECORDED} is missing: `git restore tests/data` brings it back"
    return RECORDED


@pytest.fixture(scope="session")
def transcript(recorded: Path) -> Callable[[str], list[Any]]:
    """Read a recorded conversation with a TRex server: the lines of the one whose name begins so."""

    def read(name: str) -> list[Any]:
        (path,) = (recorded / "rpc-transcripts").glob(f"{name}*.jsonl.gz")
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]

    return read


@pytest.fixture(scope="session")
def listings(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The listings of TRex's paper, which are not ours to ship; tests that need them are skipped without.

    The capture that one of them names as ``../avl/...`` lies there.
    """
    if not LISTINGS.is_dir():
        pytest.skip(f"the listings of TRex's paper are not at {LISTINGS}")
    scripts = tmp_path_factory.mktemp("scripts")
    (scripts / "avl").mkdir()
    shutil.copy(recorded / "pcap" / "delay_10_http_browsing_0.pcap", scripts / "avl")
    return Path(shutil.copytree(LISTINGS, scripts / "astf"))


@pytest.fixture(scope="session")
def serve() -> Any:
    """Put a mock server on the network: `with serve(mock) as served` (see served_mock.py)."""
    return _module("served_mock", "").ServedMock


def _module(file: str, folder: str = "ports") -> Any:
    """A module of tests/ports, or of another folder of tests; tests are not a package."""
    name = f"allosaur_tests_{file}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / folder / f"{file}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def fork_server() -> Iterator[Any]:
    """Runs commands without importing everything for each of them (see cli/fork_server.py)."""
    server = _module("fork_server", "cli").ForkServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def bird_is_here() -> None:
    """Skip where BIRD is not installed."""
    if not any(shutil.which("bird", path=path) for path in (None, "/usr/sbin", "/usr/local/sbin")):
        pytest.skip("there is no `bird`: install bird2")


@pytest.fixture(scope="session")
def networks_work() -> None:
    """Skips tests where networks cannot be made."""
    problem = _module("network").why_not()
    if problem:
        pytest.skip(problem)


@pytest.fixture
def network(networks_work: None) -> Iterator[Any]:
    """An empty network (see network.py); all that is made in it is removed after the test."""
    with _module("network").Network() as network:
        yield network


@pytest.fixture
def devices(network: Any) -> Any:
    """The module with devices under test (see device.py); skips where they cannot be made."""
    module = _module("device")
    problem = module.why_not(network)
    if problem:
        pytest.skip(problem)
    return module


@pytest.fixture(scope="session")
def traffic() -> Any:
    """The module with packets, streams and runs (see traffic.py)."""
    return _module("traffic")


@pytest.fixture(scope="session")
def offloads(networks_work: None) -> Any:
    """The module with what the far kernel leaves to its interface (see offloads.py)."""
    return _module("offloads")


@pytest.fixture(scope="session")
def real(networks_work: None) -> Any:
    """The module with real servers, clients and counters (see real.py); skips where they are missing."""
    module = _module("real")
    problem = module.why_not()
    if problem:
        pytest.skip(problem)
    return module


@pytest.fixture(scope="session")
def talks() -> Any:
    """The module with stateful profiles and servers that run them (see talks.py)."""
    return _module("talks")


@pytest.fixture(scope="session")
def doors() -> Any:
    """The module with bare requests to emulated clients (see emulation/door.py)."""
    return _module("door", "emulation")


@pytest.fixture
def daemons(networks_work: None) -> Iterator[Any]:
    """The module with daemons of Linux before emulated clients (see emulation/daemons.py)."""
    module = _module("daemons", "emulation")
    with module.room_for_neighbors():
        yield module


@pytest.fixture
def access(networks_work: None, daemons: Any) -> Any:
    """The module with routers that emulated clients send flows through (see emulation/access.py)."""
    return _module("access", "emulation")


@pytest.fixture(scope="session")
def bad_link() -> Any:
    """A bad link between two interfaces of a namespace (see bad_link.py)."""
    return _module("bad_link").BadLink


STOLEN_MAX_S = 0.1
TRIES_WHEN_STOLEN = 6
PATIENCE_S = pytest.StashKey[float]()
"""How long this process still waits, over all its tests, for a host that gives the CPUs back."""


def pytest_configure(config: pytest.Config) -> None:
    """Have a quarter of an hour to wait: longer than all tests take on a quiet machine."""
    config.stash[PATIENCE_S] = 900.0


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Do a test again that failed while the host took a CPU away for a tenth of a second or more.

    Tests hold beside busy programs; when the host stops a CPU they say nothing. Such times last for minutes,
    so a test waits for better ones.
    """
    machine = _module("machine", "")
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(TRIES_WHEN_STOLEN):
        before = machine.stolen_s()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        stolen = max(
            (after - one for after, one in zip(machine.stolen_s(), before, strict=True)), default=0.0
        )
        is_last = attempt == TRIES_WHEN_STOLEN - 1
        if is_last or stolen < STOLEN_MAX_S or not any(report.failed for report in reports):
            break
        _wait(item, machine)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _wait(item: pytest.Item, machine: Any) -> None:
    """Wait for better times; the test's time limit begins anew after that."""
    limit = pytest_timeout._get_item_settings(item)
    item.ihook.pytest_timeout_cancel_timer(item=item)
    item.config.stash[PATIENCE_S] -= machine.wait_for_calm(item.config.stash[PATIENCE_S])
    item._initrequest()  # type: ignore[attr-defined]
    if limit.timeout:
        item.ihook.pytest_timeout_set_timer(item=item, settings=limit)
