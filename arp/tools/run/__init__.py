"""What runs tools: local processes, containers, HTTP interfaces, a browser; and the scheduler."""
