"""Emulated clients as a load: they are there, are ready, and count no errors."""
