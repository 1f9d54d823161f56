"""Calibrated replay: the measured steps as a graph that can be run again with changes."""
