"""The contract between agents and ARP: the interface, and the code that all adapters share.

Read `types` (requests, answers, events), `services` (the interface), `errors`, `feed` (the order of
events), `event_log`, `driven` and `task_runtime` (base classes of adapters).
"""
