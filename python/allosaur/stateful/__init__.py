"""Stateful traffic: TCP and UDP flows, as programs of both sides.

The modules here are the profile language; the client is in ``client``. It takes files, captures and the
look-up of tunables from ``streams``.
"""
