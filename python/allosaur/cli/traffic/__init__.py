"""Traffic that goes on when a command has ended: `allosaur start`, `stop`, `update`, `stats`, `clear`."""
