"""The client of stateless traffic: one connection, the ports it owns, and what can be done with them."""
