"""Names that only scripts written for TRex use; ``trex`` and ``trex_stl_lib`` export them."""
