import argparse

from kinference.cli import demo


def test_flags_have_the_defaults_that_help_tells() -> None:
    root = argparse.ArgumentParser()
    demo.add(root.add_subparsers())
    args = root.parse_args(["demo"])
    assert (args.once, args.engines, args.speed, args.seed) == (False, 3, 4.0, 1)
    assert root.parse_args(["demo", "--once", "--engines", "2"]).engines == 2
