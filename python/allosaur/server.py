"""Starting a server from Python, for tests, demos and one-machine scripts.

    with LocalServer(ports=["memory", "memory"]) as server, server.client() as client:
        client.reset()

The server itself is the binary ``allosaur-server``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, cast, overload

from ._errors import ServerStartError, STLConnectionError, STLError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from .client._client import STLClient
    from .stateful.client._client import ASTFClient

    ClientT_co = TypeVar("ClientT_co", bound=STLClient, default=STLClient, covariant=True)
else:
    from typing import TypeVar

    ClientT_co = TypeVar("ClientT_co", covariant=True)

BINARY_NAME = "allosaur-server"
_READY_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 5.0
_STDERR_BYTES_SHOWN = 4_000
_REFUSAL = "\nerror: "
"""How the server begins to say why it ends. What follows may have several lines, one for each problem."""

# Runs before the server in its process: asks the kernel to end it when its parent ends, however
# that happens. (1 is PR_SET_PDEATHSIG, 15 is SIGTERM.)
_LAUNCHER = """
import ctypes, os, sys
parent, path = int(sys.argv[1]), sys.argv[2]
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() != parent:
    sys.exit(1)
os.execv(path, sys.argv[2:])
"""


def find_binary() -> Path:
    """Where the server's binary is. Raises ``STLError`` that says where it was looked for.

    ``$ALLOSAUR_SERVER`` comes first, then next to this Python, the build folder of the checkout
    that this file is in, and PATH.
    """
    override = os.environ.get("ALLOSAUR_SERVER")
    if override:
        if _is_program(Path(override)):
            return Path(override)
        raise STLError(f"$ALLOSAUR_SERVER is '{override}', which is not a program: correct it or unset it")
    folders = [
        Path(sys.executable).parent,
        *(parent / "target" / "release" for parent in Path(__file__).parents),
    ]
    for folder in folders:
        if _is_program(folder / BINARY_NAME):
            return folder / BINARY_NAME
    found = shutil.which(BINARY_NAME)
    if found:
        return Path(found)
    raise STLError(
        f"there is no '{BINARY_NAME}' next to {sys.executable}, in target/release or on PATH: "
        f"install the package, build it with 'cargo build --release -p allosaur-server', "
        f"or set $ALLOSAUR_SERVER"
    )


class LocalServer(Generic[ClientT_co]):
    """A server process on this machine: a context manager that starts and stops it.

    ``ports`` are port kinds like "memory" or "memory:rate=10gbps:delay=1ms"; ``cores`` is how many
    data threads. A configuration file, ``config``, goes in their place, and says more; ``options``
    are further words for ``allosaur-server serve``. ``rpc_port`` and ``pub_port`` 0 take free
    ones, whatever the file says, as does ``listen``. With ``stateful`` it is for flows, and
    ``client`` gives an ``ASTFClient``. ``http`` is where it answers HTTP, with metrics for Prometheus:
    a TCP port (0 takes a free one), or an address with one. ``emu`` gives it emulated clients, and is the TCP
    port of requests to them; True takes a free one. Start it in a thread that lives
    as long as the server: the kernel ends the server when that thread ends.

    ``host``, ``rpc_port``, ``pub_port``, ``emu_port`` (None without emulated clients), ``bird_port`` (None
    without BIRD) and ``http_url`` (None without HTTP) say where it listens once it runs. Raises
    ``ServerStartError``, an ``STLConnectionError``, with the server's own words when it does not start.
    """

    if TYPE_CHECKING:

        @overload
        def __init__(
            self: LocalServer[ASTFClient],
            ports: Sequence[str] = ...,
            cores: int = ...,
            rpc_port: int = ...,
            pub_port: int = ...,
            listen: str = ...,
            binary: Path | str | None = ...,
            options: Sequence[str] = ...,
            config: Path | str | None = ...,
            *,
            stateful: Literal[True],
            http: int | str | None = ...,
            emu: bool | int = ...,
        ) -> None: ...
        @overload
        def __init__(
            self: LocalServer[STLClient],
            ports: Sequence[str] = ...,
            cores: int = ...,
            rpc_port: int = ...,
            pub_port: int = ...,
            listen: str = ...,
            binary: Path | str | None = ...,
            options: Sequence[str] = ...,
            config: Path | str | None = ...,
            stateful: bool = ...,
            http: int | str | None = ...,
            emu: bool | int = ...,
        ) -> None: ...

    def __init__(
        self,
        ports: Sequence[str] = ("memory", "memory"),
        cores: int = 1,
        rpc_port: int = 0,
        pub_port: int = 0,
        listen: str = "127.0.0.1",
        binary: Path | str | None = None,
        options: Sequence[str] = (),
        config: Path | str | None = None,
        stateful: bool = False,
        http: int | str | None = None,
        emu: bool | int = False,
    ) -> None:
        self.ports = list(ports)
        self.cores = cores
        self.host = listen
        self.rpc_port = rpc_port
        self.pub_port = pub_port
        self.stateful = stateful
        self.emu_port: int | None = None
        self.bird_port: int | None = None
        self.http_url: str | None = None
        self._binary = binary
        self._options = ["--stateful"] if stateful else []
        self._options += [] if http is None else ["--http", str(http)]
        # True is 1 and False is 0: neither is a port that was meant.
        self._options += [] if emu is False else ["--emu-port", "0" if emu is True else str(emu)]
        self._options += options
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: Any = None
        self._stderr_text = ""

    def __enter__(self) -> LocalServer[ClientT_co]:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The process number, or None when it does not run."""
        return self._process.pid if self._process else None

    @property
    def stderr(self) -> str:
        """What the server wrote to its log so far."""
        if self._stderr is None:
            return self._stderr_text
        return Path(self._stderr.name).read_text(errors="replace")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        binary = str(self._binary or find_binary())
        arguments = ["serve"]
        if self._config is None:
            arguments += ["--ports", ",".join(self.ports), "--cores", str(self.cores)]
        else:
            arguments += ["--config", str(self._config)]
        arguments += [
            "--rpc-port",
            str(self.rpc_port),
            "--pub-port",
            str(self.pub_port),
            "--listen",
            self.host,
        ]
        self._stderr = tempfile.NamedTemporaryFile(  # noqa: SIM115 (closed in stop)
            prefix="allosaur-server-", suffix=".log"
        )
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _LAUNCHER,
                str(os.getpid()),
                binary,
                *arguments,
                *self._options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,  # Ctrl-C on a terminal is for whoever uses the server, who then stops it
        )
        try:
            self._take_ready_line(self._read_line(_READY_TIMEOUT_S))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server. Its log stays readable in ``stderr``."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._stderr_text = self.stderr
        self._stderr.close()
        self._stderr = None

    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def client(self, **settings: Any) -> ClientT_co:
        """A client for this server; it still has to be connected. ``settings`` are ``STLClient``'s."""
        from .client._client import STLClient
        from .stateful.client._client import ASTFClient

        kind = ASTFClient if self.stateful else STLClient
        made = kind(server=self.host, sync_port=self.rpc_port, async_port=self.pub_port, **settings)
        # Which of the two, ``__init__`` has said by its overloads.
        return cast("ClientT_co", made)

    def _read_line(self, timeout_s: float) -> str:
        """The first line of stdout, or what came until the server ended or the time was over."""
        process = self._process
        if process is None or process.stdout is None:
            raise STLConnectionError("the server was not started: call start() first")
        overdue = threading.Timer(timeout_s, process.kill)
        overdue.start()
        try:
            return process.stdout.readline().decode(errors="replace").strip()
        finally:
            overdue.cancel()

    def _take_ready_line(self, line: str) -> None:
        words = dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)
        if not line.startswith("ready ") or not {"rpc", "pub"} <= words.keys():
            if self._process is not None and not line:
                self._process.wait()
            raise self._start_error(line)
        self.rpc_port = int(words["rpc"].rsplit(":", 1)[1])
        self.pub_port = int(words["pub"].rsplit(":", 1)[1])
        self.emu_port = int(words["emu"].rsplit(":", 1)[1]) if "emu" in words else None
        self.bird_port = int(words["bird"].rsplit(":", 1)[1]) if "bird" in words else None
        self.http_url = words.get("http")
        # Its file may say so, too.
        self.stateful = self.stateful or words.get("mode") == "stateful"

    def _start_error(self, line: str) -> ServerStartError:
        """Why there is no ready line, in the server's own words where it has some."""
        code = self._process.poll() if self._process else None
        log = self.stderr.strip()
        _, found, refusal = f"\n{log}".rpartition(_REFUSAL)
        if found and code is not None:
            return ServerStartError(refusal.strip(), code)
        how = f"ended with exit code {code}" if code is not None else f"said '{line}' instead of 'ready ...'"
        return ServerStartError(f"it {how}. Its log: {log[-_STDERR_BYTES_SHOWN:] or 'nothing'}", code)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
