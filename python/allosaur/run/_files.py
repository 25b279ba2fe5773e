"""Files that a run leaves for programs: its JSON document (`--out`), and JUnit XML (`--junit`).

They are written in any case: a run that could not be made says why in them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allosaur.cli import _output_file, _result
from allosaur.cli._errors import EXIT_INTERRUPTED, EXIT_SETUP, CommandError, refusal


@dataclass(frozen=True)
class RunFiles:
    """Where a run's files go, as far as they are wanted."""

    profile: str = ""
    out: Path | None = None
    junit: Path | None = None

    def write(self, document: Mapping[str, Any]) -> None:
        """Write the document of a run. Raises :class:`CommandError`."""
        self._write_document(document)
        if self.junit is not None:
            from allosaur.run import _junit

            with _output_file.writing("--junit", self.junit):
                _junit.write_result(self.junit, document)

    def write_error(self, exit_code: int, message: str) -> None:
        """Write that the run could not be made. Raises :class:`CommandError`."""
        self._write_document({"command": "run", "ok": False, "error": message, "exit_code": exit_code})
        if self.junit is not None:
            from allosaur.run import _junit

            with _output_file.writing("--junit", self.junit):
                _junit.write_error(self.junit, self.profile, message, _result.heading("run"))

    def told(self) -> list[str]:
        """Return the lines that say where they are."""
        files = {"Result": self.out, "JUnit": self.junit}
        return [f"{name}: {path}" for name, path in files.items() if path is not None]

    def _write_document(self, document: Mapping[str, Any]) -> None:
        if self.out is not None:
            _output_file.write("--out", self.out, json.dumps(document, indent=2) + "\n")


@contextlib.contextmanager
def of_run(options: argparse.Namespace) -> Iterator[RunFiles]:
    """Give the files of a run; when the block raises, they say why. Raises :class:`CommandError`."""
    files = RunFiles(
        options.profile,
        *(
            None if name is None else _output_file.checked(option, name)
            for option, name in (("--out", options.out), ("--junit", options.junit))
        ),
    )
    try:
        yield files
    except KeyboardInterrupt:
        _tell(files, EXIT_INTERRUPTED, "stopped")
        raise
    except Exception as error:
        known = refusal(error)
        _tell(files, known.exit_code if known else EXIT_SETUP, str(known or error))
        raise


def _tell(files: RunFiles, exit_code: int, message: str) -> None:
    # What ended the run is the error to report, whatever becomes of the files.
    with contextlib.suppress(CommandError):
        files.write_error(exit_code, message)
