"""The replies of emulated clients' commands as types, a module for each plugin, written from their rows."""
