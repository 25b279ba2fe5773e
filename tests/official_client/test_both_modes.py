"""TRex's official clients of both modes at one server, unchanged: one after the other, and side by side."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from allosaur.server import LocalServer

SCRIPT = Path(__file__).resolve().parent / "both_modes.py"


def test_both_clients_use_one_server(client_python: str, client_environment: dict[str, str]) -> None:
    with LocalServer(ports=["memory"] * 4) as server:
        done = subprocess.run(
            [
                client_python,
                "-W",
                "ignore",
                str(SCRIPT),
                server.host,
                str(server.rpc_port),
                str(server.pub_port),
            ],
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
            env=client_environment,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    seen = json.loads(done.stdout.splitlines()[-1])
    assert (seen["streams"], seen["streams_again"]) == (500, 500)
    for connections, dropped in (seen["flows"], seen["flows_again"]):
        assert connections > 0
        assert dropped == 0
    beside = seen["side_by_side"]
    assert beside["flow_ports"] == [2, 3]
    assert beside["connections"] > 0
    assert beside["sending"]
    assert beside["lost"] == 0
    assert "'flo' in stateful mode" in beside["refused"]
