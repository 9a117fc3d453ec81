"""Transports: they send and receive frames, and do not know their content.

Read `queue_outbox` and `wire` first. Then there is one file for each transport; `stdio` is the
shortest.
"""
