"""Questions and commands: `dialogue` (from typed lines to an answer), `open_questions`, `commands`.

`in_flight` has the inputs that the server has not confirmed yet.
"""
