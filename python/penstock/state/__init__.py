"""Reads the files that Penstock keeps in a checkpoint; an independent implementation of `docs/PROTOCOL.md` in Python.

Nothing here writes. `framing`, `manifest`, `change_set` and `routing_version` decode bytes, `storage` finds files,
`checkpoint` reads a query's files and names a damaged one, and `inspection` and `verification` report on all files
together.
"""
