"""Projects of local tools: their directories, files, disk limits and programs.

Read `projects`, `project_table`, `project_files`, `project_look`, `project_disk`, `program`.
"""
