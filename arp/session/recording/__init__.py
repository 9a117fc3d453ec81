"""Recording of facts and texts: removal of secrets, the log, and the messages that show a fact.

Read in this order: `projection`, `recorded`, `redacted`, `log`.
"""
