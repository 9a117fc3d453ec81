"""OpenTelemetry spans and metrics, computed from the facts of the log.

Read `settings`, `conventions`, `fold` (facts → spans and figures), `exporting`, `follower`.
"""
