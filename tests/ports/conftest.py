"""Fixtures for tests on the kernel's interfaces: networks that are gone after each test."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def _module(file: str) -> Any:
    """A module beside this file; tests are not a package."""
    name = f"allosaur_tests_{file}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{file}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


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
    problem = module.why_not()
    if problem:
        pytest.skip(problem)
    return module


@pytest.fixture(scope="session")
def traffic() -> Any:
    """The module with packets, streams and runs (see traffic.py)."""
    return _module("traffic")
