"""Parts of the programs that run: `conversation`, and what reads keys and writes to a terminal.

The programs are `arp_terminal.chat`, `arp_terminal.connect` and `arp_terminal.pipe`.
"""
