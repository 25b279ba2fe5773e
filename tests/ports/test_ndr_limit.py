"""`allosaur ndr` in front of devices with a limit: a bridge behind tc-tbf(8), and a link in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli._main import main

FRAME_BYTES = 60
"""The shortest frame, as the kernel counts it: without FCS."""
LIMIT_PPS = 8000.0
LOSS = 0.05
BURST_BYTES = 3000
TRIAL_S = 0.3


def test_the_limit_of_a_bridge_is_found(
    network: Any, devices: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge = devices.Bridge(network)
    rate = f"{LIMIT_PPS * FRAME_BYTES * 8:.0f}bit"
    shaper = ("tbf", "rate", rate, "burst", str(BURST_BYTES), "limit", str(BURST_BYTES))
    bridge.run("tc", "qdisc", "add", "dev", bridge.far(1), "root", *shaper)
    words = ["ndr", "constant_stream", "--local", "--local-ports", ",".join(bridge.ports), "--max", "20kpps"]
    # Of each load half of the seconds may fail: a machine that stands still sends what it owes at once.
    trials = [
        "-d",
        f"{TRIAL_S}s",
        "--first-trial",
        f"{TRIAL_S}s",
        "--sum",
        f"{3 * TRIAL_S}s",
        "--exceed",
        "50%",
    ]
    code = main([*words, *trials, "--loss", f"{LOSS:.0%}", "--precision", "5%", "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    (case,) = json.loads(out)["cases"]
    (limit,) = case["limits"]
    # What the shaper lets through at once comes on top, in each trial.
    most = (LIMIT_PPS + 2 * BURST_BYTES / FRAME_BYTES / TRIAL_S) / (1 - LOSS)
    assert 0.8 * LIMIT_PPS < limit["lower"]["load"] <= most
    assert limit["upper"]["load"] <= limit["lower"]["load"] / 0.94
    assert limit["throughput"]["load"] == pytest.approx(limit["lower"]["load"], rel=LOSS + 0.01)
    far_above = [one for one in case["trials"] if one["load"] > 15_000]
    assert far_above
    for one in far_above:
        # The bridge lost them, not we: they were sent.
        assert one["not_received"] > 0.3 * one["sent"]


def test_a_reset_of_a_bridge_and_its_recovery_are_timed(
    network: Any, devices: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge = devices.Bridge(network)
    off_s = 1.0
    reset = "; ".join(
        f"ip netns exec {bridge.namespace} {one}" if one.startswith("ip") else one
        for one in ("ip link set bridge down", f"sleep {off_s}", "ip link set bridge up")
    )
    words = ["ndr", "constant_stream", "--local", "--local-ports", ",".join(bridge.ports), "--max", "2kpps"]
    tests = ["--tests", "reset,recovery,back-to-back", "--reset-command", reset, "--reset-within", "4s"]
    code = main([*words, *tests, "-d", "300ms", "--first-trial", "200ms", "--loss", "20%", "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    (case,) = json.loads(out)["cases"]
    found = case["tests"]
    # It was off for no less than that, as far as one can tell who reads counters now and then.
    assert found["reset"]["seconds"] is not None, found
    assert found["reset"]["seconds"] >= off_s - 2 * found["reset"]["resolution_s"]
    assert found["recovery"]["seconds"] is None, "nothing is lost at the highest load"
    assert "pass whole" in found["back-to-back"]["summary"]


MEMORY_NDR_PPS, MEMORY_PDR_PPS = 8000.0, 10_000.0
MEMORY_LOSS, MEMORY_PDR_LOSS = 0.02, 0.05
MEMORY_BURST = 400
"""Frames that pass at once: who stands still for a twentieth of a second loses nothing by that."""
MEMORY_TRIAL_S = 0.4


def test_both_limits_of_a_link_in_memory_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    device = [
        f"police={MEMORY_PDR_PPS:.0f}pps",
        f"loss={MEMORY_LOSS:.0%}",
        f"loss_above={MEMORY_NDR_PPS:.0f}pps",
        f"burst={MEMORY_BURST}",
    ]
    ports = ":".join(["memory", *device]) + ",memory"
    words = ["ndr", "constant_stream", "--local", "--local-ports", ports, "--max", "20kpps"]
    trials = [
        "-d",
        f"{MEMORY_TRIAL_S}s",
        "--first-trial",
        f"{MEMORY_TRIAL_S}s",
        "--sum",
        f"{3 * MEMORY_TRIAL_S}s",
    ]
    goals = ["--exceed", "50%", "--loss", f"0,{MEMORY_PDR_LOSS:.0%}", "--precision", "4%", "--json"]
    code = main([*words, *trials, *goals])
    out, err = capsys.readouterr()
    assert code == 0, err
    (case,) = json.loads(out)["cases"]
    ndr, pdr = case["limits"]
    # What passes at once comes on top, in each trial.
    more = MEMORY_BURST / MEMORY_TRIAL_S
    assert 0.95 * MEMORY_NDR_PPS < ndr["lower"]["load"] < MEMORY_NDR_PPS + 1.2 * more
    assert 0.95 * MEMORY_PDR_PPS < pdr["lower"]["load"] < (MEMORY_PDR_PPS + more) / (1 - MEMORY_PDR_LOSS)
    assert ndr["lower"]["load"] < pdr["lower"]["load"]
    # The link lost them, not we: they were sent.
    far_above = [one for one in case["trials"] if one["load"] > 1.5 * MEMORY_PDR_PPS]
    assert far_above
    assert all(one["not_received"] > 0.2 * one["sent"] for one in far_above)
