"""The published search among the options of ``luciole search``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from luciole.tools.common.command import UsageError

if TYPE_CHECKING:
    from luciole.lquantizer.search.published.options import SeedOptions

SEED = "seed"
_OWN = ("generations", "parents", "offspring", "partial", "final", "folding", "granularity")
_BOUNDS = ("max_size", "max_us", "target_drop", "metric")
_ELSE = (*_BOUNDS, "options", "evaluations", "minutes", "devices")
"""Options that the published search does not have."""


def add_preset(parser: argparse.ArgumentParser) -> None:
    """Declare ``--preset`` and the options that go with it."""
    group = parser.add_argument_group("the published search")
    group.add_argument(
        "--preset",
        choices=(SEED,),
        help="widths of 2 to 8 bits by NSGA-II in generations, candidates trained a little, the "
        "front in full (extra tensorflow); the options below go with it alone",
    )
    counts = (
        ("generations", "generations after the uniform candidates (default 16)"),
        ("parents", "networks that each generation keeps (default 24)"),
        ("offspring", "networks that each generation makes (default 24)"),
        ("partial", "epochs of a candidate's training (default 12)"),
        ("final", "epochs of the front's training (default 50)"),
    )
    for name, text in counts:
        group.add_argument(f"--{name}", type=int, metavar="N", help=text)
    group.add_argument(
        "--folding",
        choices=("approximate", "exact"),
        help="how the final training folds batch normalizations (default exact)",
    )
    group.add_argument(
        "--granularity",
        choices=("channel", "tensor"),
        help="how many scales weights have: one for each channel (default) or for the tensor",
    )
    group.add_argument(
        "--search-inputs", action="store_true", help="choose the widths of tensors as well"
    )
    group.add_argument("--mirror", action="store_true", help="mirror images at random")
    group.add_argument(
        "--labelled-output",
        metavar="NAME",
        help="the output that --labels belong to, where there are several",
    )


def check_preset(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    chosen = arguments.preset == SEED
    values = {name: getattr(arguments, name) for name in (_ELSE if chosen else _OWN)}
    flags = () if chosen else ("search_inputs", "mirror", "labelled_output")
    values |= {name: getattr(arguments, name) or None for name in flags}
    if chosen and arguments.finish != "fit":
        values["finish"] = arguments.finish
    wrong = [name for name, value in values.items() if value not in (None, [])]
    if wrong:
        reason = f"does not go with --preset {SEED}" if chosen else f"goes with --preset {SEED}"
        raise UsageError(f"--{wrong[0].replace('_', '-')} {reason}")


def seed_options(arguments: argparse.Namespace, fixed: Mapping[str, str]) -> SeedOptions:
    """Read the options of a published search. Raises QuantizeError for unknown ones."""
    from luciole.lquantizer.search.published.options import SeedOptions

    options = {n: v for n in _OWN if (v := getattr(arguments, n)) is not None}
    rest = ("calibration", "judges", "files", "seed", "workers", "cluster")
    training = ("mirror", "labelled_output")
    options |= {name: getattr(arguments, name) for name in (*rest, *training)}
    return SeedOptions(
        inputs=arguments.search_inputs, tied=tuple(arguments.tie), fixed=dict(fixed), **options
    )
