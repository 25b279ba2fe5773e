"""`allosaur plan`: what a load takes of a machine, from costs that were measured on it."""
