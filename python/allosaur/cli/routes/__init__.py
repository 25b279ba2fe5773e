"""`allosaur routes`: BGP speakers of a server, and what they announce."""
