"""Determine the conformance level of a ledger with the published JSON Schemas.

Read `schema_check` (one document, one schema), then `ledger_levels`.
"""
