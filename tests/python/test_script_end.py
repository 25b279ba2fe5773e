"""Scripts that end without `disconnect()` say nothing of their own about it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from allosaur.server import LocalServer

CLIENT = 'client = {kind}("127.0.0.1", sync_port={rpc}, async_port={pub})'
ENDS = {
    "stateless": "{client}\nclient.connect()\n",
    "with ports": "{client}\nclient.connect()\nclient.reset()\n",
    "in a function": "def work():\n    {client}\n    client.connect()\nwork()\n",
    "twice": "{client}\nclient.connect()\nclient.disconnect()\nclient.connect()\n",
    "by an error": "{client}\nclient.connect()\nraise SystemExit\n",
    "stateful": "{client}\nclient.connect()\n",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_script_may_end_without_disconnect(end: str) -> None:
    with LocalServer(stateful=end == "stateful") as server:
        kind = "ASTFClient" if end == "stateful" else "STLClient"
        client = CLIENT.format(kind=kind, rpc=server.rpc_port, pub=server.pub_port)
        script = f"from allosaur import {kind}\n{ENDS[end].format(client=client)}"
        # What a thread does while the process ends differs from time to time.
        for _ in range(5):
            done = subprocess.run(
                [sys.executable, "-c", script],
                capture_output=True,
                text=True,
                timeout=60,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            assert done.stderr == ""
            assert done.returncode == 0
