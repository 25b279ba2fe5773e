"""The import name ``trex.common.services`` of existing scripts: everything comes from ``allosaur``."""
