"""What can be said: the wire of ARP without any input or output.

Read in this order: `errors`, `json_value`, `components`, `catalog`, `validate`, `patch`, `tree`,
`messages`, `codec`, `capabilities`, `agent_connection`, `screen`, `renderer_connection`.
"""
