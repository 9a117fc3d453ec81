"""What an input or a change from outside does to a session."""
