"""`python -m asrtrain VERB ...`, the same as the `asrtrain` command."""

from asrtrain.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
