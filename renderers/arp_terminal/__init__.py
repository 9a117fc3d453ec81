"""The terminal as a renderer: a session of an agent, shown as text and answered by typing.

Reading order: `painter` (the last check before the terminal), `render` and `drawing/` (component →
lines), `prompt` and `asking/` (questions), `log/` (the order of printing), `programs/`, then the
three programs: `chat` (a user at a terminal or a pipe), `pipe` (`arp render`), `connect`
(`arp connect`).
"""
