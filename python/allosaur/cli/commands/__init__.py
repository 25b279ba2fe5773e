"""The commands of `allosaur`, a file each."""
