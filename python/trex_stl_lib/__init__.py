"""The import name ``trex_stl_lib`` of existing scripts: everything comes from ``allosaur``."""
