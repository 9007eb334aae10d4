"""``python -m ptad``: the command line."""

from ptad.cli import main

if __name__ == "__main__":
    main()
