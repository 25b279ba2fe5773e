"""Copy the Python packages that the command line needs, and that Debian 12 lacks: bundle.py FOLDER.

They come from the environment of this Python, so nothing is fetched; only pure Python may be copied. Prints
what was copied, with its licence.
"""

from __future__ import annotations

import re
import shutil
import sys
from importlib.metadata import Distribution, distribution, requires
from pathlib import Path

from packaging.requirements import Requirement

#: What Debian 12 has as it is needed: deb.sh names the packages.
OF_DEBIAN = {"scapy", "pyzmq", "pyyaml", "prompt-toolkit", "wcwidth", "argcomplete"}


def needed(name: str, extras: frozenset[str], found: dict[str, Distribution]) -> None:
    """Add what a package needs, and what that needs."""
    for line in requires(name) or []:
        one = Requirement(line)
        key = re.sub(r"[-_.]+", "-", one.name).lower()
        wanted = one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras or {""})
        if wanted and key not in OF_DEBIAN and key not in found:
            found[key] = distribution(one.name)
            needed(one.name, frozenset(one.extras), found)


def copy(package: Distribution, folder: Path) -> None:
    """Copy the files of a package, and its licences."""
    for file in package.files or []:
        if ".." in file.parts or "__pycache__" in file.parts:
            continue  # a script, or what this Python compiled
        if file.suffix == ".so":
            sys.exit(
                f"error: {package.name} has {file}: only pure Python can go into a package for all machines"
            )
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(package.locate_file(file)), target)


def licence(package: Distribution) -> str:
    """Return the name of a package's licence, wherever it says it."""
    told = package.metadata
    classes = [one for one in told.get_all("Classifier") or [] if one.startswith("License ::")]
    named = (
        told.get("License-Expression") or (classes or [""])[-1].rpartition(":: ")[2] or told.get("License")
    )
    return (named or "see its folder").splitlines()[0]


def main(folder: Path) -> None:
    """Copy all, and print the list."""
    found: dict[str, Distribution] = {}
    needed("allosaur", frozenset(), found)
    for name, package in sorted(found.items()):
        copy(package, folder)
        print(f"{name} {package.version}: {licence(package)}")


main(Path(sys.argv[1]))
