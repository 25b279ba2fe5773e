"""Replies of the RPC: dns.

Written from the command table in `crates/emulation`: change it there.
"""

from __future__ import annotations

from typing import TypedDict


DnsRecord = TypedDict("DnsRecord", {"type": str, "class": str, "answer": str})
"""An entry of a domain, in the RPC."""
