"""Which part of a suite runs: `--share K/N`, every N-th case from the K-th on.

A driver without the option runs everything. `scripts/test` sets TC_TEST_TURN, the number of the day, and then each driver
takes one of the `quick` shares that it names: another one every day, printed, so that the same can be had again.

    shares.add_option(parser, quick=12)
    chosen = shares.part(cases, options)
"""
import argparse
import os
import re


def share(text):
    """(K, N) of "K/N"."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no share: K/N, K from 1 to N")
    return int(found[1]), int(found[2])


def of_the_day(quick, turn=None):
    """The share of a run without --share: everything, or, where `scripts/test` wants to be quick, one of `quick`."""
    turn = os.environ.get("TC_TEST_TURN", "") if turn is None else turn
    return (int(turn) % quick + 1, quick) if turn else (1, 1)


def add_option(parser, quick):
    """Adds --share; `quick` is how many shares a quick run takes one of."""
    parser.add_argument("--share", type=share, default=of_the_day(quick), metavar="K/N", help="run every N-th case, from the K-th on")


def part(items, options):
    """The items of the share; says which it is where it is not all of them."""
    items, (k, n) = list(items), options.share
    if n == 1:
        return items
    chosen = items[k - 1::n] or items[:1]  # a share has something in it
    print(f"--share {k}/{n}: {len(chosen)} of {len(items)}", flush=True)
    return chosen
