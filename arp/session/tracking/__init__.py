"""What a session remembers: recent inputs, recent turns, branches, threads, places of popups.

Read in this order: `input_log`, `serials`, `window`, `branches`, `threads`, `popup_places`.
"""
