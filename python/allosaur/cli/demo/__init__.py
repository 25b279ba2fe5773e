"""The parts of ``allosaur demo``: its profiles and its checks."""
