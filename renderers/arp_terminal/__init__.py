"""The terminal as a renderer: a session of an agent, shown as text and answered by typing.

Reading order: `painter` (what may reach the terminal), `render` and `drawing/` (component →
lines), `asking/` (questions), `log/` (what is printed when), `programs/`, then the three that run:
`chat` (a person at a terminal or a pipe), `pipe` (`arp render`), `connect` (`arp connect`).
"""
