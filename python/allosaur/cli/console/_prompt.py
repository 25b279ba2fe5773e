"""The line that somebody types: editing, completion, history and its search, by prompt_toolkit.

The prompt is drawn anew while it waits, for it tells what sends.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout

from allosaur.cli.console._completion import completions
from allosaur.cli.console._prompt_text import prompt_text
from allosaur.cli.console._session import Session
from allosaur.cli.console.commands import of_session

_REFRESH_S = 0.5


class Prompt:
    """Asks for lines."""

    def __init__(self, session: Session) -> None:
        self._session = session
        session.commands = of_session(session)
        history = _history()
        session.history += list(reversed(list(history.load_history_strings())))
        self._prompt: PromptSession[str] = PromptSession(
            history=history,
            completer=_LineCompleter(session),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            enable_history_search=True,
        )

    def read(self) -> str | None:
        """Return the next line; `None` at the end. Ctrl-C gives up a line that is begun."""
        while True:
            try:
                with patch_stdout(raw=True):
                    return self._prompt.prompt(
                        lambda: prompt_text(self._session), refresh_interval=_REFRESH_S
                    )
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._prompt.default_buffer.text:
                    return None


class _LineCompleter(Completer):
    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        begun = document.text_before_cursor
        last = begun[-1:].strip() and begun.split()[-1].rpartition(";")[2]
        for word in completions(self._session, begun):
            yield Completion(word, start_position=-len(last))


def _history() -> History:
    """Return the history of this user, which the next console has again; where no file can be, only here."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(state).expanduser() / "allosaur" / "console_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
