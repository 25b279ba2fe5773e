"""Who may use a server: what it refuses to listen on, which names it answers to, which files it sends."""

from __future__ import annotations

import resource
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from allosaur import STLError
from allosaur.server import LocalServer, ServerStartError, find_binary


def refusal(*options: str, listen: str = "127.0.0.1") -> str:
    with pytest.raises(ServerStartError) as caught, LocalServer(listen=listen, options=options):
        pass
    return str(caught.value)


@pytest.mark.parametrize("listen", ["*", "0.0.0.0", "::"])
def test_who_listens_beyond_this_machine_says_who_may_come(listen: str) -> None:
    told = refusal(listen=listen)
    assert "--rpc-auth" in told
    assert "--open" in told
    with LocalServer(listen=listen, options=["--open"]) as server:
        assert server.is_running()


def test_localhost_is_an_address() -> None:
    with LocalServer(listen="localhost") as server, server.client() as client:
        assert len(client.get_all_ports()) == 2


def test_tokens_and_ports_that_ask_for_none_do_not_go_together(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann:0123456789abcdef\n")
    tokens.chmod(0o600)
    guarded = ("--rpc-auth", str(tokens))
    assert "--emu-zmq ipc" in refusal(*guarded, "--emu-zmq", "tcp", listen="*")
    assert "leave one of them out" in refusal(*guarded, "--open", listen="*")


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/nothing"])
def test_names_that_others_could_own_are_not_answered(path: str) -> None:
    with LocalServer(http=0, options=["--http-host", "lab.example"]) as server:

        def status(host: str) -> int:
            request = urllib.request.Request(f"{server.http_url}{path}", headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    return int(response.status)
            except urllib.error.HTTPError as error:
                return error.code

        known = 404 if path == "/nothing" else 200
        for host in ("127.0.0.1:1", "localhost", "[::1]:4502", "prometheus-target:4502", "lab.example"):
            assert status(host) == known, host
        for host in ("evil.example", "127.0.0.1.evil.example", "lab.example.evil.example:4502"):
            assert status(host) == 421, host


def test_files_outside_of_the_captures_folder_are_not_told_of(tmp_path: Path) -> None:
    (tmp_path / "inside.pcap").write_bytes(b"abcdefgh")
    (tmp_path / "link.pcap").symlink_to("/etc/passwd")
    with LocalServer(options=["--captures-folder", str(tmp_path)]) as server, server.client() as client:
        client.reset()
        outside = ("/etc/passwd", "/etc/no-such-file", f"{tmp_path}/link.pcap", f"{tmp_path}/../x.pcap")
        for path in outside:
            with pytest.raises(STLError, match="--captures-folder") as caught:
                client.push_remote(path, ports=[0])
            assert "bytes" not in str(caught.value)
        with pytest.raises(STLError) as caught:
            client.push_remote(f"{tmp_path}/inside.pcap", ports=[0])
        assert "--captures-folder" not in str(caught.value)


def test_too_few_open_files_are_said_at_the_start() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))

    command = [str(find_binary()), "serve", "--rpc-port", "0", "--pub-port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=limit)
    assert ended.returncode > 0, ended
    assert "needs 88 open files, and 16 are allowed" in ended.stderr
    assert "ulimit -n" in ended.stderr
