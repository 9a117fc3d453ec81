"""Frames: how messages are cut out of bytes, and put into them."""
