"""The network, one file per concept of the paper."""

from ptad.model.network import Network, Output, Reference

__all__ = ["Network", "Output", "Reference"]
