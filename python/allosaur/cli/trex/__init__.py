"""TRex's own command lines, so that scripts that start TRex go on working."""
