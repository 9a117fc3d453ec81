"""Tools that are built to order: router, coding agent and its toolbox."""
