"""Measuring one run. The only part of `profiler` that loads torch; import its modules by name."""
