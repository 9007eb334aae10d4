"""The terms that the score is a sum of: one protocol (``base``), one file for each term."""
