"""`allosaur run` with flows over TLS on ports in memory: what handshakes count, and failures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("binary")
Allosaur = Callable[..., Any]
HTTPS_GET = Path(__file__).resolve().parents[2] / "profiles" / "stateful" / "https_get.py"


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_handshakes_are_counted_and_timed(version: str, allosaur: Allosaur) -> None:
    words = ["-t", f"version={version}", "-t", "resume=0.5"]
    words += ["-m", "50", "-d", "2", "--json"]
    found = allosaur("run", "https_get", "--local", *words, in_time=True).json()
    assert found["ok"], found["reasons"]
    for side in ("clients", "servers"):
        counted = found["outcomes"][side]
        assert counted["completed"] == 100
        assert counted["tls_handshakes.full"] + counted["tls_handshakes.resumed"] == 100
        assert 10 < counted["tls_handshakes.resumed"] < 90
    assert found["times"]["handshake"]["count"] == 100


def test_a_handshake_that_fails_fails_the_run_by_its_name(allosaur: Allosaur, tmp_path: Path) -> None:
    text = HTTPS_GET.read_text().replace("version=version", 'version="1.2"')
    profile = tmp_path / "versions.py"
    profile.write_text(text.replace("answers = TLS(", 'answers = TLS(version="1.3", '))
    ended = allosaur("run", str(profile), "--local", "-m", "20", "-d", "1", "--json")
    assert ended.code == 1
    found = ended.json()
    errors = {(one["side"], one["counter"]): one["count"] for one in found["errors"]}
    assert errors[("client", "tls_alerts_received.protocol_version")] == 20
    assert errors[("server", "tls_alerts_sent.protocol_version")] == 20
    assert any("protocol_version" in reason for reason in found["reasons"])


def test_thresholds_know_handshakes(allosaur: Allosaur) -> None:
    ended = allosaur("run", "https_get", "--local", "-m", "20", "-d", "1", "--fail-if", "handshake.p99>1us")
    assert ended.code == 1
    assert "handshake.p99" in ended.out
