"""Commands of `arp` that read what happened: `arp sessions`, `arp events`.

Read in this order: `speaking`, `source`, `served_ledger`, `file_ledger`, `fact_line`, `sessions`,
`events`.
"""
