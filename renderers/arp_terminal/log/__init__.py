"""The order of printing: `entries` of a turn, `turn_log`, `transcript`, and `scroll`.

`scroll` prints each entry once and redraws only the entries that may still change.
"""
