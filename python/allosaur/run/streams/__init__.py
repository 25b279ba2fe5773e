"""Streams as a load: what each port sends, packet by packet, and what of it is received."""
