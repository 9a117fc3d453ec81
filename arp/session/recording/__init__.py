"""Facts and texts: recorded, redacted, in the log, and as messages for a screen."""
