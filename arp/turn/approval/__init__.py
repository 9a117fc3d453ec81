"""Approval of tool calls: a person allows one exact input, and the files that it names.

`arp/session/approval.py` has what is recorded: the request, the terms, the answer. Read it first;
then `approval` (what an accepted answer allows), `approver` (asks a person), `named_files` (files
that an input names) and `file_binding` (compares them before and after the question).
"""
