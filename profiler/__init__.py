"""Measuring and analysis library. Importing it loads neither torch nor Django."""

__version__ = "0.1.0"
