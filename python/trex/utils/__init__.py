"""The import name ``trex.utils`` of existing scripts: everything comes from ``allosaur``."""
