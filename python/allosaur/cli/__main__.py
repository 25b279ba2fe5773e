"""Lets `python -m allosaur.cli` do what `allosaur` does."""

from allosaur._launch import launch

launch()
