"""Facts: the events of agent runs, and the rules that each fact must meet.

Read in this order: `fact`, `fact_types`, `payload_fields`, `payloads`, `fact_writer`, `chain`,
`tracing`. `schemas` has the published JSON Schemas. `arp.audit.models` folds facts into state.
"""
