"""The import name ``trex.common`` of existing scripts: everything comes from ``allosaur``."""
