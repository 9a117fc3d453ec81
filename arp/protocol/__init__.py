"""The protocol as values and pure functions: messages, components, codecs, connections.

Read in this order: `errors`, `json_value`, `components`, `catalog`, `validate`, `patch`, `tree`,
`messages`, `codec`, `capabilities`, `agent_connection`, `screen`, `renderer_connection`. `framing`
splits bytes into messages; `objects` is the object dialect.
"""
