"""The import name ``trex`` of existing scripts: everything comes from ``allosaur``."""
