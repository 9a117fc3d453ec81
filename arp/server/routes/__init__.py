"""HTTP routes of the server, one file for each subject; each route is a function.

Read `session_routes`, `chats`, `workflows`, `blobs`, `user_routes`, `login_routes`, `schemas`,
`monitoring`.
"""
