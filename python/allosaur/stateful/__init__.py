"""Stateful traffic: TCP and UDP flows, as programs of both sides; one noun a file.

The profile language: ``_commands``, ``_program``, ``_captured`` (programs from captures), ``_replace``
(fields of applications), ``_addresses``, ``_association``, ``_tunables``, ``_templates``, ``_profile``,
``_loader``.
"""
