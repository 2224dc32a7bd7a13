"""``python -m grb`` is the command ``grb``."""

from grb.cli import main

if __name__ == "__main__":
    main()
