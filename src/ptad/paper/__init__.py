"""The paper's network, one file per concept (needs torch)."""
