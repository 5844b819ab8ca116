"""Transports that carry bytes between the transfer sidecars of an application."""
