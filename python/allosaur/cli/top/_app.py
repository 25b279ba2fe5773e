"""The dashboard on a terminal, by Textual: reads now and then in a thread, draws, and passes keys on."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, TypeVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from allosaur.cli._errors import EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_OK, EXIT_TERMINATED, brief, refusal
from allosaur.cli.top import _keys, _screen
from allosaur.cli.top._lines import Lines
from allosaur.cli.top._source import Lost, Source
from allosaur.cli.top._state import Action, State

Result = TypeVar("Result")
_SIGNALS = {signal.SIGTERM: EXIT_TERMINATED, signal.SIGHUP: EXIT_HUNG_UP}


class Dashboard(App[int]):
    """A dashboard of a source. `command` does a line of a console, and returns what it printed."""

    AUTO_FOCUS = None
    ENABLE_COMMAND_PALETTE = False
    ESCAPE_TO_MINIMIZE = False
    CSS = """
    Screen { background: ansi_default; overflow: hidden; layers: default above; }
    Input { layer: above; dock: bottom; width: 100%; height: 1; border: none; padding: 0; display: none; }
    Input, Input:focus { border: none; background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+d", "leave", show=False, priority=True),
    ]

    def __init__(
        self,
        source: Source,
        state: State,
        interval_s: float,
        command: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._source = source
        self._state = state
        self._interval_s = interval_s
        self._command = command
        self._reading: asyncio.Task[None] | None = None
        self._due = asyncio.Event()
        # The client is for one thread at a time.
        self._thread = ThreadPoolExecutor(1, "dashboard")
        self.lines = Lines()

    def compose(self) -> ComposeResult:
        """Return the widgets: the lines, and a line for commands, which is not there at first."""
        yield self.lines
        yield Input(placeholder="a command of the console; escape: back", select_on_focus=False)

    def on_mount(self) -> None:
        """Begin to read, and to end by signals as all programs of this command line do."""
        loop = asyncio.get_running_loop()
        if not self.is_headless:
            for number, code in _SIGNALS.items():
                loop.add_signal_handler(number, self.exit, code)
        self.redraw()
        self._reading = asyncio.create_task(self._read())

    async def on_unmount(self) -> None:
        """Wait for the request that is under way: the client is used again after this."""
        if self._reading is not None:
            self._reading.cancel()
        await asyncio.to_thread(self._thread.shutdown)

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new size."""
        self.redraw()

    def redraw(self) -> None:
        """Draw what is known now."""
        width, height = self.size
        self.lines.draw(_screen.lines(self._state, width, height), width)

    async def on_key(self, event: events.Key) -> None:
        """Do what a key is for."""
        if isinstance(self.focused, Input):
            if event.key == "escape":
                self._close_line()
            return
        name = event.character if event.character and event.is_printable else event.key
        if name == "q":
            self.exit(EXIT_OK)
        elif name == "escape" and self._command is not None:
            self._open_line()
        else:
            await self._press(name)

    def action_interrupt(self) -> None:
        """End by Ctrl-C."""
        self.exit(EXIT_INTERRUPTED)

    def action_leave(self) -> None:
        """End by Ctrl-D, as TRex's dashboard does."""
        self.exit(EXIT_OK)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do a line of the console; the last line that it prints is shown."""
        command, text = self._command, event.value.strip()
        event.input.value = ""
        if text in ("q", "quit", "exit"):
            self.exit(EXIT_OK)
        elif text and command is not None:
            await self._do(lambda: command(text))

    async def _press(self, name: str) -> None:
        before = self._state.wanted
        done = _keys.pressed(self._state, name)
        if isinstance(done, str):
            self._state.tell(done, time.time(), is_warning=True)
        elif isinstance(done, Action):
            await self._do(lambda: self._source.change(done))
        if self._state.wanted != before:
            self._due.set()
        self.redraw()

    async def _do(self, change: Callable[[], str]) -> None:
        """Change something, and say what came of it."""
        try:
            self._state.tell(await self._in_thread(change), time.time())
        except Exception as error:
            known = refusal(error)
            if known is None:
                raise
            self._state.tell(brief(known), time.time(), is_warning=True)
        self._due.set()
        self.redraw()

    async def _read(self) -> None:
        while True:
            self._due.clear()
            try:
                self._state.take(await self._in_thread(self._source.read, self._state.wanted))
            except Lost as lost:
                self._state.lose(str(lost))
            except Exception as error:
                self._handle_exception(error)
                return
            self.redraw()
            try:
                await asyncio.wait_for(self._due.wait(), self._interval_s)
            except asyncio.TimeoutError:
                continue

    async def _in_thread(self, call: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    def _open_line(self) -> None:
        line = self.query_one(Input)
        line.display = True
        line.focus()

    def _close_line(self) -> None:
        self.query_one(Input).display = False
        self.set_focus(None)


def run(app: Dashboard) -> int:
    """Run it on this terminal; return the exit code. Signals are then handled as they were before."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT, signal.SIGINT)
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    try:
        code = app.run(mouse=False)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code is not None else EXIT_INTERRUPTED
