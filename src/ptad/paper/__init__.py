"""The paper's network, one file per concept; everything but :mod:`ptad.paper.settings` needs torch."""
