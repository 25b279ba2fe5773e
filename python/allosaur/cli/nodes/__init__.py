"""`allosaur node`, and `ns` of the console: Linux nodes of a server's ports."""
