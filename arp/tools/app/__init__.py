"""The Tool Agent of an app: it connects `arp.tools` with agents of `arp.runtime`.

Read `agent` (`ToolAgent`, the argument of `App(tools=…)`), `ari_coder` (an agent runtime as coding
agent), `imported` (tools of MCP servers).
"""
