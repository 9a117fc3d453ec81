"""The wire protocol of ARP as values and pure functions, without I/O.

Read in this order: `errors`, `json_value`, `components`, `catalog`, `validate`, `patch`, `tree`,
`messages`, `codec`, `capabilities`, `agent_connection`, `screen`, `renderer_connection`.
"""
