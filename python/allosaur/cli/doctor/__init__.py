"""What a machine has for generating traffic, what it lacks, and what to change: `allosaur doctor`.

`_machine` reads the files of /proc and /sys, `_server` asks the server's program; the modules `_cpus`,
`_memory`, `_cards` and `_privileges` judge what they found, a function for each finding, and `_command`
tells it.
"""
