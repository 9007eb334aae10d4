"""A model as an ONNX file, and a runner for it that needs numpy and onnxruntime only.

Nothing is imported here: ``ptad.export.runner`` has to work where torch is not installed.
"""
