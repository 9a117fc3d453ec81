"""The contract between agents and ARP, and the base classes of all adapters.

Read `types` (requests, answers, events), `services` (the interface), `errors`, `feed` (the order of
events), `event_log`, `driven` and `task_runtime` (base classes of adapters), `threads`.
`cut_off`, `model_errors`, `enum_values` and `user_questions` are shared by adapters.
"""
