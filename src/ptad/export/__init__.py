"""A model as an ONNX file, and a runner for it that needs no torch.

Nothing is imported here: :mod:`ptad.export.runner` has to work where torch is not installed.
"""
