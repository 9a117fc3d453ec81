"""Questions and commands: `dialogue` (a prompt and its replies), `open_questions`, `commands`.

`in_flight` has the inputs that the agent side has not confirmed yet.
"""
