"""The Tool Agent of an app: tools of `arp.tools`, built by agents of `arp.runtime`, in sessions.

Read `agent` (what is handed to an `App`), `ari_coder` (an agent runtime carries out tasks), then
`imported` (MCP servers as tools).
"""
