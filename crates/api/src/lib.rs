//! The words of the RPC: requests, replies, events, errors and the command table.
