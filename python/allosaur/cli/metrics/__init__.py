"""`allosaur metrics`: what a server's `/metrics` says, read and sent on."""
