"""The console: commands by TRex's names and options, line by line, over one client that stays connected."""
