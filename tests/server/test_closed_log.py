"""A server whose log nobody reads any more goes on, and ends as it should."""

from __future__ import annotations

import subprocess

from allosaur.server import find_binary


def test_a_log_that_is_closed_ends_nothing() -> None:
    command = [str(find_binary()), "serve", "--rpc-port", "0", "--pub-port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert server.stdout is not None and server.stderr is not None
    assert server.stdout.readline().startswith(b"ready ")
    server.stderr.close()
    # It says in the log that it ends.
    server.terminate()
    assert server.wait(timeout=20) == 0
    server.stdout.close()
