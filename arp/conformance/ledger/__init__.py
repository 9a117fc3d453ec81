"""The conformance level of a ledger, by the published JSON Schemas.

Read `schema_check` (one document, one schema), then `ledger_levels`.
"""
