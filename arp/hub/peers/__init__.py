"""Connections of renderers, in both dialects.

Read `peer` (the session dialect), then `object_peer` (the object dialect).
"""
