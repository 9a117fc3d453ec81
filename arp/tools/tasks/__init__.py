"""Tasks of the Tool Agent: their specs, records, costs and texts."""
