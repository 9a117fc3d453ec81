"""What a session keeps about its past: branches, recent inputs, threads, memory."""
