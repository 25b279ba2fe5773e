"""`allosaur emu`: emulated clients of a server, and what they know, in tables that the console shows too."""
