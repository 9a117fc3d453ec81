"""Facts: the events of agent runs, and the rules that each fact must meet.

Read in this order: `fact`, `fact_family`, one file of `families`, `fact_types`, `payload_fields`,
`payloads`, `fact_writer`, `chain`, `tracing`. `record_steps` describes effects on read models,
which `arp.audit.models` applies. `benchmark_names` has earlier names of fields. `schemas` has the
published JSON Schemas.
"""
