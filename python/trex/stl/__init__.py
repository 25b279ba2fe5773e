"""The import name ``trex.stl`` of existing scripts: everything comes from ``allosaur``."""
