"""What stands before a line that is typed: the mode, what is ours, and what of it sends."""

from __future__ import annotations

from allosaur.cli._modes import MODES
from allosaur.cli.console._session import Session


def prompt_text(session: Session) -> str:
    """Return the prompt: where the console is, what is ours, and what of it sends."""
    if session.settings.only_emulation:
        return "trex(emu)>" if session.settings.is_trex else "allosaur(emulation)> "
    if session.settings.is_trex:
        return _trex_prompt(session)
    if not session.is_connected:
        return "allosaur(offline)> "
    client = session.client
    ours, sending = client.get_acquired_ports(), client.get_active_ports(owned=True)
    words = [MODES[client.get_mode()]]
    if not ours:
        words.append("read-only")
    else:
        words.append("all ports" if client.is_all_ports_acquired() else f"port {_numbers(ours)}")
    if sending:
        words.append(f"{_numbers(sending)} sending")
    service = client.get_service_enabled_ports()
    if service:
        words.append(f"{_numbers(service)} service")
    return f"allosaur({', '.join(words)})> "


def _trex_prompt(session: Session) -> str:
    """Return TRex's prompt, which scripts wait for."""
    if not session.is_connected:
        return "trex(offline)>"
    client = session.client
    ours = client.get_acquired_ports()
    if not ours:
        return "trex(read-only)>"
    if not client.is_all_ports_acquired():
        return f"trex (ports: {', '.join(map(str, ours))})>"
    service, filtered = client.get_service_enabled_ports(), client.get_service_filtered_ports()
    if filtered == ours:
        return "trex(service-filtered)>"
    if not service:
        return "trex>"
    return "trex(service)>" if service == ours else f"trex(service: {', '.join(map(str, service))})>"


def _numbers(ports: list[int]) -> str:
    return ",".join(map(str, ports))
