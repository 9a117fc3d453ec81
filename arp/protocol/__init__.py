"""The protocol as values and pure functions: messages, components, codecs, connections.

Read in this order: `errors`, `json_value`, `components`, `catalog`, `validate`, `patch`, `tree`,
`messages`, `codec`, `capabilities`; then the folder `connection`. `framing` splits bytes into
messages; `objects` is the object dialect. `README.md` lists the other files by subject.
"""
