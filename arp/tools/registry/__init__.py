"""The registry: descriptions, schemas and states of tools, stored in JSON files.

Read `models` (the objects of the interface), `states` (the two state machines of a tool),
`json_file`, `json_table`, `registry`, `schemas` with `schema_patterns`.
"""
