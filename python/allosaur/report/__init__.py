"""What a run did over time, and how to show it: counters, samples of them, and the HTML report.

Nothing here talks to a server: a sampler is given the function that reads the counters.
"""
