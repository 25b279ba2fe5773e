"""What tests of metrics share: the guide's table, and a Prometheus that scrapes a server."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from allosaur.server import LocalServer

GUIDE = Path(__file__).resolve().parent.parent.parent / "docs" / "guide" / "metrics.md"
Query = Callable[[str], list[Any]]
UP_WITHIN_S = 90


class Row(NamedTuple):
    """A line of the guide's table."""

    kind: str
    labels: frozenset[str]
    when: str

    @property
    def always(self) -> bool:
        """Whether there are series of it from the start on."""
        return self.when == "always"


@pytest.fixture(scope="session")
def metric_rows() -> dict[str, Row]:
    """The metrics that the guide shows, by their names as they are queried."""
    lines = re.findall(
        r"^\| `(allosaur_\w+)` \| (\w+) \| ([^|]*) \| (?:[^|\\]|\\.)* \| ([^|]*) \|$", GUIDE.read_text(), re.M
    )
    rows = {
        name: Row(kind, frozenset(re.findall(r"`(\w+)`", labels)), when.strip())
        for name, kind, labels, when in lines
    }
    assert len(rows) == len(lines) > 100
    return rows


CONFIG = """
scrape_configs:
  - job_name: allosaur
    scrape_interval: 200ms
    scrape_timeout: 200ms
    static_configs:
      - targets: ["{target}"]
"""


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Callable[[LocalServer], Query]]:
    """Starts a Prometheus that scrapes a server, and gives the function that asks it for values.

    The test is skipped where it is not installed.
    """
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("Prometheus is not installed (Debian: apt-get install prometheus)")
    with ExitStack() as stack:

        def scrape(server: LocalServer) -> Query:
            assert server.http_url is not None
            config = tmp_path / "prometheus.yml"
            config.write_text(CONFIG.format(target=server.http_url.removeprefix("http://")))
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{free.getsockname()[1]}"
            command = [binary, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
            command += [f"--web.listen-address={address}", "--log.level=warn"]
            process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            stack.callback(process.terminate)
            query = _query(address)
            _wait_until_up(query)
            return query

        yield scrape


def _query(address: str) -> Query:
    def query(text: str) -> list[Any]:
        url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': text})}"
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.load(response)["data"]["result"]  # type: ignore[no-any-return]

    return query


def _wait_until_up(query: Query) -> None:
    until = time.monotonic() + UP_WITHIN_S
    while True:
        try:
            if [one["value"][1] for one in query("up")] == ["1"]:
                return
        except OSError:
            pass
        assert time.monotonic() < until, "Prometheus does not scrape"
        time.sleep(0.05)
