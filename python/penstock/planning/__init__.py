"""Planners: pure functions on arrays, a mechanism of the papers in each module.

Nothing here reads a clock, a file or a socket, and every function gives the same plan for the same arguments.
"""
