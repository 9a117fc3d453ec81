"""`python -m arp` is the command `arp`, also where that is not on the path."""

from arp.cli import main

if __name__ == "__main__":
    main(prog_name="arp")
