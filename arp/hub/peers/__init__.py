"""Connections of renderers and servers, in both dialects."""
