"""Both ends of a connection without I/O, and the screen that a renderer shows."""
