"""Frames for renderers of the object dialect."""
