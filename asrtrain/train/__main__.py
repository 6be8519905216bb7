"""`torchrun ... -m asrtrain.train key=value ...`: a worker of the verb `train`."""

import sys

from asrtrain.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["train", *sys.argv[1:]]))
