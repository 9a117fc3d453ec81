"""Framing: splitting bytes into messages, and joining messages into bytes."""
