"""What can be said: the wire of ARP without any input or output.

Read in this order: `json_value`, `errors`, `limits`, `component`, `components`, `catalog`,
`validation`, `patch`, `tree`, `messages`, `capabilities`, `codec`, `agent_connection`,
`screen`, `renderer_connection`.
"""
