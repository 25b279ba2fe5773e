"""The replies of the RPC as types, a module for each noun, written from the server's command table.

``reply: PortStatus = rpc.call("get_port_status", port_id=0)`` tells a type checker what is in the reply.
"""
