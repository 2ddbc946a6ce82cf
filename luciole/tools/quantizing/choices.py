"""Turn the arguments of ``luciole quantize`` and ``lquantizer`` into the options of a method."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from luciole.tools.common.command import UsageError
from luciole.tools.quantizing.arguments import DROP, Kind, check_kind, is_chosen, refuse

if TYPE_CHECKING:
    from luciole.lquantizer import MinifloatOptions
    from luciole.lquantizer.assignment.choosing import Options, WholeOptions
    from luciole.lquantizer.assignment.options import QuantizeOptions

_LEARNED = "learned"
"""The scheme of levels whose bits ``--encode-bits`` says."""
_OF_INTEGERS: tuple[str, ...] = (
    *("compatible", "step", "config", "granularity", "ranges", "rounding", "rescale", "symmetric"),
    *("input_type", "output_type", "seed", "ranges_from", "target_drop", "least_bits"),
)
"""Arguments that ``luciole.quantize`` takes under the same names for integers."""
_BESIDE_CONVERSION = frozenset(
    {"model", "output", "report", "strip_names", "simulate", "requantize", "no_proof", "keep"}
    | {"kinds", "data_limit", "allow_outside", "custom", "json", "debug"}
)
"""Arguments that a change of integers that are there takes."""
_OF_FILES = ("keep", "strip_names", "save_ranges", "input_type", "output_type", "tune", "qat")
"""Arguments about a file that is written, or trained before."""


def check_conversion(arguments: argparse.Namespace) -> None:
    """Refuse options that a network of integers has no use for. Raises UsageError."""
    others = [name for name in vars(arguments) if name not in _BESIDE_CONVERSION]
    refuse(arguments, others, "--simulate and --requantize learn nothing: leave {} out")


def check_sensitivity(arguments: argparse.Namespace) -> None:
    """Refuse options that ``--sensitivity`` would pass over. Raises UsageError."""
    from luciole.lquantizer.assignment.schemes import MIXED

    config = "--sensitivity is of one scheme for all layers: name it by --scheme, leave {} out"
    refuse(arguments, ("config",), config)
    if arguments.scheme == MIXED:
        raise UsageError("--sensitivity is of one scheme for all layers: mixed chooses several")
    refuse(arguments, ("compatible",), "--sensitivity is not of ONE's numbers: leave {} out")
    judges = "--sensitivity measures signal/noise and the answers that stay: leave {} out"
    refuse(arguments, ("metric", "labels"), judges)
    refuse(arguments, _OF_FILES, "--sensitivity neither trains nor writes a file: leave {} out")


def asked_options(arguments: argparse.Namespace) -> Options:
    """Read the options of the scheme that was asked for. Raises UsageError for what does not go
    with it and for data that are missing, QuantizeError for choices that there are not.
    """
    scheme = _scheme(arguments)
    kind = _kind(scheme)
    check_kind(arguments, kind)
    options: Options
    if kind is Kind.LEVELS:
        options = _levels(arguments, scheme or _LEARNED)
        learns = f"--scheme {scheme}"
    elif kind is Kind.MINIFLOATS:
        options = _minifloats(arguments, scheme or "")
        learns = "--scaled or --search" if options.needs_data else ""
    else:
        options = _integers(arguments, scheme)
        named = _learning(options)
        learns = "" if named is None else f"--scheme {named}"
        takes_data = options.takes_data or bool(named)
        if arguments.save_ranges and not takes_data:
            raise UsageError(f"--scheme {options.scheme} has no ranges: leave --save-ranges out")
    if learns and arguments.data is None:
        raise UsageError(f"{learns} learns from data: give --data")
    return options


def kind_of(options: Options) -> Kind:
    """Return the kind of the scheme that options belong to."""
    from luciole.lquantizer import MinifloatOptions, QuantizeOptions

    if isinstance(options, QuantizeOptions):
        return Kind.LEVELS
    return Kind.MINIFLOATS if isinstance(options, MinifloatOptions) else Kind.INTEGERS


def has_schemes(arguments: argparse.Namespace) -> bool:
    """Return whether a config chooses schemes for single layers."""
    from luciole.lquantizer import Choice, Config

    return bool(Config.of(arguments.config, Choice()).schemes)


def spared_scheme(arguments: argparse.Namespace) -> str:
    """Return the scheme of layers that get no levels: floats in what the published baseline makes,
    and where widths are found, which leaves nothing over.
    """
    from luciole.lquantizer.assignment.options import SPARED

    is_float = arguments.method == "published" or arguments.auto_bits
    return arguments.spared or ("float" if is_float else SPARED)


def _spared_at_first(arguments: argparse.Namespace) -> str | None:
    """Choose the scheme of layers without levels until a training ends, None for the baseline."""
    if arguments.method == "published":
        return None
    return spared_scheme(arguments) if has_schemes(arguments) else "float"


def labels_judge(arguments: argparse.Namespace) -> bool:
    """Return whether something is judged that labels would count for: a metric, or a target."""
    of_answers = arguments.auto_bits and arguments.target_size is None
    return bool(
        arguments.metric is not None
        or of_answers
        or arguments.search
        or arguments.scheme == "mixed"
    )


def _scheme(arguments: argparse.Namespace) -> str | None:
    """Name the scheme: the one that was asked for, that of the whole network in a config, learned
    levels where an option speaks of them, else the recommended one; None where the configuration is
    another tool's, or its numbers are.
    """
    from luciole.lquantizer.assignment.choosing import is_foreign_file
    from luciole.lquantizer.assignment.schemes import RECOMMENDED

    if arguments.scheme == "":
        raise UsageError("--scheme is empty: leave it out, or name one")
    if arguments.scheme is not None:
        return str(arguments.scheme)
    config = arguments.config
    if arguments.compatible is not None or (config is not None and is_foreign_file(config)):
        return None
    if config is not None:
        return _scheme_of(config)
    return _LEARNED if _speaks_of_levels(arguments) else RECOMMENDED


def _speaks_of_levels(arguments: argparse.Namespace) -> bool:
    """Check whether an option was typed that goes with learned levels alone."""
    own = [name for name, kind in arguments.kinds.items() if kind is Kind.LEVELS]
    return any(is_chosen(arguments, name) for name in [*own, "finetune"])


def _scheme_of(config: str) -> str:
    """Read the scheme for the whole network from a config; faults are told by what reads it all."""
    from luciole.lquantizer import Choice, Config, QuantizeError

    try:
        return Config.of(config, Choice()).default.own_scheme or _LEARNED
    except QuantizeError:
        return _LEARNED


def _kind(scheme: str | None) -> Kind:
    """Return the kind of a scheme, integers where a configuration says it."""
    from luciole.lquantizer.assignment.layer_format import Levels, Minifloat
    from luciole.lquantizer.assignment.minifloat_options import MINIFLOAT
    from luciole.lquantizer.assignment.options import format_named

    format = None if scheme is None else format_named(scheme)
    if scheme == _LEARNED or isinstance(format, Levels):
        return Kind.LEVELS
    is_float = scheme == MINIFLOAT or isinstance(format, Minifloat)
    return Kind.MINIFLOATS if is_float else Kind.INTEGERS


def _levels(arguments: argparse.Namespace, scheme: str) -> QuantizeOptions:
    """Read the options of learned levels. What has no levels stays float at first: a training may
    come between.
    """
    from luciole.lquantizer import QuantizeOptions
    from luciole.lquantizer.assignment.layer_format import Levels
    from luciole.lquantizer.assignment.options import format_named, level_choices, options_of
    from luciole.quantizing import check_widths

    _check_auto_bits(arguments)
    check_widths({**vars(arguments), "scheme": scheme, "target_drop": _auto_drop(arguments)})
    format = format_named(scheme)
    widths: dict[str, Any] = level_choices(scheme, format) if isinstance(format, Levels) else {}
    is_trained = bool(arguments.finetune or arguments.tune or arguments.qat)
    choices = {
        "method": arguments.method,
        "encode_bits": arguments.encode_bits or widths.get("encode_bits"),
        "input_bits": arguments.input_bits,
        "weight_bits": arguments.weight_bits,
        "config": arguments.config,
        "spared": _spared_at_first(arguments),
        "all_layers": arguments.all_layers,
        "weights_only": arguments.weights_only,
        "uniform": arguments.uniform or "uniform" in widths,
        "unroll_lstms": arguments.unroll_lstm,
        "target_size": arguments.target_size,
        "target_drop": _auto_drop(arguments),
        "levels_only": arguments.auto_bits and is_trained,
        "settings": _published_settings(arguments),
        "seed": arguments.seed,
    }
    options = options_of(choices)
    assert isinstance(options, QuantizeOptions), "no scheme is among the choices"
    options.per_layer()  # refuses a config before the work
    return options


def _check_auto_bits(arguments: argparse.Namespace) -> None:
    """Refuse options that contradict ``--auto-bits``, and targets without it."""
    targets = [arguments.target_size, arguments.target_drop]
    if not arguments.auto_bits:
        refuse(arguments, ("target_size", "target_drop"), "{} goes with --auto-bits")
        return
    if not any(targets.count(None) == count for count in (1, 2)):
        raise UsageError("--auto-bits goes with one of --target-size SIZE and --target-drop POINTS")
    if arguments.metric and targets.count(None) == 2:
        raise UsageError("--metric has a unit of its own: give --target-drop in it")
    if arguments.method == "published" or arguments.weights_only:
        raise UsageError("--auto-bits goes with --method fit and learned inputs")
    widths = ("encode_bits", "input_bits", "weight_bits")
    refuse(arguments, widths, "--auto-bits finds the widths: {} does not go with it")


def _auto_drop(arguments: argparse.Namespace) -> float | None:
    """Read how many answers may change, where that decides widths."""
    drop: float | None = arguments.target_drop
    if arguments.auto_bits and arguments.target_size is None and drop is None:
        return DROP
    return drop


def _published_settings(arguments: argparse.Namespace) -> object:
    """Read how the published baseline fits its bases, None for another method."""
    from luciole.lquantizer import Settings

    if arguments.method == "published":
        refuse(arguments, ("weights_only", "uniform", "unroll_lstm"), "{} goes with --method fit")
        return Settings(
            arguments.update or "gradient",
            arguments.initialisation or "random",
            seed=arguments.seed or 0,
        )
    text = "{} goes with --method published"
    refuse(arguments, ("update", "initialisation"), text)
    return None


def _minifloats(arguments: argparse.Namespace, scheme: str) -> MinifloatOptions:
    """Read the options of minifloats: bits from their own options, or else from the scheme."""
    from luciole.lquantizer import MinifloatOptions
    from luciole.lquantizer.assignment.layer_format import Minifloat
    from luciole.lquantizer.assignment.options import format_named

    if not arguments.search:
        refuse(arguments, ("target_drop", "per_layer"), "{} goes with --search")
    elif arguments.metric is not None and arguments.target_drop is None:
        raise UsageError("--metric has a unit of its own: give --target-drop in it")
    refuse(arguments, ("config", "seed"), "{} does not go with minifloats")
    target = DROP if arguments.target_drop is None else arguments.target_drop
    exponent, mantissa = arguments.exponent, arguments.mantissa
    format = format_named(scheme)
    if isinstance(format, Minifloat):
        exponent = format.exponent if exponent is None else exponent
        mantissa = format.mantissa if mantissa is None else mantissa
    return MinifloatOptions(
        exponent,
        mantissa,
        arguments.scaled,
        arguments.layers_only,
        target if arguments.search else None,
        arguments.per_layer,
    )


def _integers(arguments: argparse.Namespace, scheme: str | None) -> WholeOptions:
    from luciole.implanting import read_ranges
    from luciole.lquantizer.assignment.choosing import options_for_network
    from luciole.lquantizer.assignment.schemes import MIXED

    choices = {name: vars(arguments)[name] for name in _OF_INTEGERS if is_chosen(arguments, name)}
    if "ranges_from" in choices:
        choices["ranges_from"] = read_ranges(choices["ranges_from"])
    if scheme == MIXED and not str(arguments.output).endswith(".circle"):
        choices.setdefault("least_bits", 4)  # other programs read these files
    return options_for_network({"scheme": scheme, **choices})


def _learning(options: WholeOptions) -> str | None:
    """Name a scheme that needs data, of the whole network or of single layers."""
    from luciole.lquantizer import Choice, Config, UniformOptions
    from luciole.lquantizer.assignment.schemes import learns

    others: set[str] = set()
    if isinstance(options, UniformOptions):
        others = Config.of(options.config, Choice()).schemes
        if options.does_without_data:
            others.discard(options.scheme)
    learning = {*filter(learns, others), *([options.scheme] if options.needs_data else [])}
    return min(learning, default=None)
