"""What is printed when: `entries` of a turn, `turn_log`, `transcript`, and `scroll`.

`scroll` prints each entry once and redraws only those that may still change.
"""
