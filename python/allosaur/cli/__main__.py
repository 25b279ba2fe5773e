"""Lets `python -m allosaur.cli` do what `allosaur` does."""

import sys

from allosaur.cli._main import main

sys.exit(main())
