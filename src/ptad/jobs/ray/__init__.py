"""The cluster: scoring, training and the benchmark's grid on the machines of a Ray cluster.

All machines see the model, the tables and the output under the same paths (a shared file system).
"""
