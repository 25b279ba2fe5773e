"""The client of stateful traffic: profiles on the server, their runs, counters, topology and tunnels."""
