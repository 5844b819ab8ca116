"""Planners: pure functions on arrays, one mechanism of the papers in each module.

Nothing here reads a clock, a file or a socket, and a function always returns the same plan for the same arguments.
"""
