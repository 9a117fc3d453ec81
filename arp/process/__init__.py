"""Run other programs so that nothing outlives this process, with limited resources.

Read `supervise` (a program ends together with its child processes), `limits` (start a program as
another user, with limits), then `sandbox`, which combines both in one command, in bubblewrap where
that works, and `memory` (detect when a program and its child processes use too much memory).
`program` starts programs with all of these.
"""
