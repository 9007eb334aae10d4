"""The addresses of the service, one module for each part of it."""
