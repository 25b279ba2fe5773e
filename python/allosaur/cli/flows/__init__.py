"""What the commands do with stateful traffic: load it, drive a run of it, show and judge what came of it."""
