"""Figures: one module each. Only these import matplotlib."""
