"""The contract between agents and ARP: what all adapters share, and what they never see past.

Read `types` (requests, answers, events), `services` (the interface), `errors`, `feed` (the order of
events), `event_log`, `driven` and `task_runtime` (base classes of adapters).
"""
