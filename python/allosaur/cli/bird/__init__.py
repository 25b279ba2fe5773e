"""What `allosaur bird` does with the BIRD of a server."""
