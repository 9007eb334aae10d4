"""Scoring and training on the machines of a Ray cluster; the benchmark uses the connection too.

All machines see the model, the tables and the output under the same paths (a shared file system).
"""
