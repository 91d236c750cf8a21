"""Where the process begins: `kinference ...` and `python -m kinference ...`."""

import sys

from kinference.cli import main

if __name__ == "__main__":
    sys.exit(main())
