"""How bytes travel. A transport knows frames, never what is in them.

Read in this order: `queue_outbox`, `wire`, `websocket`, `event_stream`, `stdio`.
"""
