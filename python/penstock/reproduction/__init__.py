"""Reproduction of the papers' experiments that need only counting and simulation, compared with their figures."""
