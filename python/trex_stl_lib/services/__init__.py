"""The import name ``trex_stl_lib.services`` of existing scripts: everything comes from ``allosaur``."""
