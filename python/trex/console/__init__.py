"""``trex.console`` of existing scripts: what plug-ins of the console import."""
