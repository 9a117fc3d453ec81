"""`arp replay`: show a recording again, or run the inputs of a recorded case again.

Read `replay`, `playing` (in this terminal), `serving_recording` (`--serve`), `rerun` (`--agent`).
"""
