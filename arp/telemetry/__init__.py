"""Spans and metrics of OpenTelemetry, derived from the facts of the log.

Read `settings`, `conventions`, `measured`, `timing`, `fold`, then `sink`, `providers`, `follower`.
"""
