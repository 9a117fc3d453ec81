"""Projects of tools on the disk: their files, limits and programs."""
