"""Lets `python -m allosaur` do what `allosaur` does."""

from allosaur._launch import launch

launch()
