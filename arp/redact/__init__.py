"""Redaction: find secrets in text and JSON, and replace them with a mark.

Read in this order: `names`, `shapes`, `settings`, `redactor`, `stream`.
"""
