"""Reads what Penstock keeps in a checkpoint: `docs/PROTOCOL.md`, written a second time from that text, in Python.

Nothing here writes. `framing`, `manifest`, `change_set` and `routing_version` know bytes, `storage` knows where files
are, `checkpoint` reads a query's files and names the one that is wrong, `inspection` and `verification` tell what they
say together.
"""
