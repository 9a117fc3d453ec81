"""Both ends of a connection without I/O, and the screen that a renderer shows.

Read `agent_connection`, `screen`, `renderer_connection`.
"""
