"""Replies of the RPC: ipfix.

Written from the command table in `crates/emulation`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class GeneratorInfo(TypedDict):
    """What a generator does."""

    enabled: bool
    """Whether it makes records."""
    options_template: bool
    """Whether its template is one of options."""
    scope_count: int
    """How many fields of options say what they are about."""
    template_rate_pps: float
    """Packets with its template a second."""
    data_rate_pps: float
    """Packets with records a second."""
    data_records_num: int
    """Records that a packet shall have; 0 is as many as fit."""
    data_records_num_send: int
    """Records that a packet has."""
    template_id: int
    """The number of its template."""
    fields_num: int
    """Fields of its records."""
    engines_num: int
    """Fields that engines write."""


class GeneratorInfos(TypedDict):
    """What generators do."""

    generators_info: dict[str, GeneratorInfo]
    """By their names."""


class PostInfo(TypedDict):
    """A file that was posted."""

    name: str
    """Its name."""
    time: str
    """When it was posted."""
    status: str
    """`success` or `failure`."""
    http_status_code: str
    """The status of the reply, such as `200 OK`; empty without a reply."""
    http_response_msg: str
    """What the reply said."""
    transport_status: str
    """`success`, or why there was no reply."""
    bytes_uploaded: int
    """Bytes that the server took."""
    temp_records_uploaded: int
    """Templates that it took."""
    data_records_uploaded: int
    """Records that it took."""


class ExporterInfo(TypedDict):
    """How records leave."""

    exporter_type: str
    """`emu-udp`, `udp`, `file`, `http` or `https`."""
    enabled: str
    """`true` or `false`, as a string: whether the client shall send."""
    files: NotRequired[list[PostInfo]]
    """Of `http` and `https`: the files that were posted last."""
