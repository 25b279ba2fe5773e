"""Packets apart from any traffic: Scapy as needed here, offsets of fields, VLAN tags, capture files."""
