"""Curves over a common axis, and pictures of them."""
