"""The import name ``trex.astf`` of existing scripts: everything comes from ``allosaur``."""
