"""What to send: streams, their packets, modes and field engine programs, and profiles of them in files."""
