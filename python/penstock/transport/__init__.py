"""Bytes between the sidecars of an application."""
