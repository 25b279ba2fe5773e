"""Print what pyproject.toml says the project needs, one requirement a line: at run time, and for development.

With it the linters and tests can be installed without building the server first. With the name of a group
(`docs`, or `run` for what is needed at run time), only the requirements of that one.
"""

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: the copy that pip carries
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

project = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"]
groups = {"run": project["dependencies"], **project["optional-dependencies"]}
print("\n".join(groups[sys.argv[2]] if sys.argv[2:] else [*groups["run"], *groups["dev"]]))
