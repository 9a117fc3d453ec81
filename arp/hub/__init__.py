"""The event loop: it runs agents, connects renderers, and delivers facts once they are durable.

Read `hub` (the interface for servers), `directory`, `runner`, `peers` (connections); then
`readers`, which read the log. `README.md` lists the other files by subject.
"""
