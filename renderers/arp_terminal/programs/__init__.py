"""Parts of the programs: `conversation`, and the modules that read keys and write to a terminal.

The programs are `arp_terminal.chat`, `arp_terminal.connect` and `arp_terminal.pipe`.
"""
