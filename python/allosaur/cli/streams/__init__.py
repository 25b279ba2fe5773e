"""What the commands do with streams: drive a run of them, show and judge what came of it."""
