"""Secrets: what they look like, and how they are removed from text and JSON.

Read in this order: `names`, `shapes`, `settings`, `redactor`, `stream`.
"""
