"""Flows as a load: a stateful profile, its clients and servers, and how its flows ended."""
