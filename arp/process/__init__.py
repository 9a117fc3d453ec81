"""How other programs are run: nothing of them outlives us, and what they may use is limited.

Read `supervise` (a program and all that it starts end together), `limits` (a program is started as
another user, with limits), then `sandbox`, which makes one command of both, in bubblewrap where
that works, and `memory` (when a program and all that it has started use too much).
"""
