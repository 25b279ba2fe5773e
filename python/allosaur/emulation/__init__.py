"""Emulated clients: hosts that speak their protocols, namespaces of them, and the client of their server."""
