"""`allosaur compare`: two results beside each other, and whether the second is worse."""
