"""Passdown hands work from one participant to the next without losing its meaning."""

__version__ = "0.1.0"
