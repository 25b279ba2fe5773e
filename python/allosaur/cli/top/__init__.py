"""The dashboard: what a server does, drawn anew every second."""
