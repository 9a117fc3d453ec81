"""What is exported from a session's facts: values in, values out.

Read in this order: `fact_line`, `manifest`, `scope`, `sections`, `timeline`, `correlation`, `gaps`,
`evidence`, `verify`; then `replay_case`, `review`, `pacing`; then `trajectory`, `trials`,
`comparison`.
"""
