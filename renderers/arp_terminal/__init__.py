"""The terminal as a renderer: a session of an agent, shown as text and answered by typing.

Reading order: `painter` (what may reach the terminal), `render` (component →
lines), `turn`, `transcript` (what is printed when), `dialogue` (questions), `conversation`, then
the three that run: `chat` (a person at a terminal), `line_mode` (pipes), `pipe` (`arp render`).
"""
