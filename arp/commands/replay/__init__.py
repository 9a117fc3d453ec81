"""`arp replay`: show a recorded session again, or run the inputs of a recorded case again.

Read `replay`, `playing` (in this terminal), `serving_recording` (`--serve`), `rerun` (`--agent`).
"""
