"""JSON-RPC to a server: transports, messages, calls and batches, and the events that the server publishes."""
