"""``luciole``: one name for all programs."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from luciole.tools.common.command import DESCRIBE, WRONG_USAGE, Described, parser_for


class Program(NamedTuple):
    """A program: where it lives and what it does, in a line."""

    module: str
    summary: str


PROGRAMS = {
    "demo": Program(
        "demo", "quantize a bundled model to 3, 2 and 1 bits and compare size, accuracy and time"
    ),
    "quantize": Program(
        "quantize", "give a network fewer bits: int8, int4, float16, ..., or learned levels"
    ),
    "lquantizer": Program(
        "lquantizer", "learn levels for a model's dense layers and convolutions from data"
    ),
    "search": Program(
        "search.command", "find the best files of every size, with bits chosen for each layer"
    ),
    "run": Program("run", "run a model over records, and write what it computes of each"),
    "eval": Program(
        "evaluate", "measure a model's accuracy on labelled data, and its agreement with another"
    ),
    "bench": Program(
        "bench", "time a model, operator by operator, beside other runtimes (also: circle-bench)"
    ),
    "warmup": Program("warmup", "compile kernels ahead of time and say where they are kept"),
    "cache": Program(
        "cache", "show where compiled kernels are kept, write and read archives of them"
    ),
    "import": Program("import_model", "convert a model into a file of another format"),
    "dump": Program("dump", "print everything a model file holds (also: circle-dump)"),
    "view": Program(
        "view.command", "look at a model in the browser, as a page or a picture (also: circle-view)"
    ),
    "diff": Program("diff", "measure how far two models are apart, layer by layer, on real data"),
    "chef": Program("chef", "cook a model from one of ONE's recipes, or write a model's recipe"),
    "optimize": Program(
        "optimize", "rewrite a model into one with fewer operators that computes the same"
    ),
    "extract": Program(
        "surgery.extract", "make a model of some operators, or of those between two tensors"
    ),
    "split": Program("surgery.split", "split a model into parts that run one after the other"),
    "cut": Program("surgery.cut", "make other tensors the outputs or inputs of a model"),
    "resize": Program(
        "surgery.resize", "give inputs other shapes, and infer all shapes that follow"
    ),
    "implant": Program(
        "surgery.implant", "put other tools' scales, zero points, values and ranges into a model"
    ),
    "build": Program("jobs.command", "run all steps that one file names, or onecc's .cfg"),
    "pack": Program("pack", "put a model into an nnpackage, which ONE's runtime loads"),
    "compile": Program("compile", "write a network as C99 for machines without Python"),
    "completion": Program(
        "completion", "write a script by which a shell completes programs and options"
    ),
    "verify": Program("verify", "check a model file and list what is wrong with it"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program that the first argument names."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in PROGRAMS:
        return run_named(words[0], words[1:])
    width = max(map(len, PROGRAMS))
    listed = "\n".join(f"  {name:<{width}}  {p.summary}" for name, p in PROGRAMS.items())
    parser = parser_for("luciole", f"{luciole_text()}\n\nprograms:\n{listed}")
    parser.usage = "luciole PROGRAM [...]; luciole PROGRAM --help says more"
    if not words:
        parser.print_help()
        return WRONG_USAGE
    parser.add_argument(
        "program", choices=list(PROGRAMS), metavar="PROGRAM", help="one of the programs above"
    )
    parser.parse_args(words[:1])
    return WRONG_USAGE


def run_named(name: str, words: Sequence[str], called: str = "") -> int:
    """Run one of the programs, which calls itself by another name where it was ``called`` so."""
    module = importlib.import_module(f"luciole.tools.{PROGRAMS[name].module}")
    return int(module.main(words, program=called or f"luciole {name}"))


def parser_of(name: str) -> argparse.ArgumentParser:
    """Find the parser of one of the programs."""
    module = importlib.import_module(f"luciole.tools.{PROGRAMS[name].module}")
    try:
        module.main(DESCRIBE, program=f"luciole {name}")
    except Described as described:
        return described.parser
    raise AssertionError(f"{name} runs without run_program")


def luciole_text() -> str:
    """Describe luciole in a line."""
    return "Read, quantize to 1-4 learned bits, run and look at .circle and .tflite models."
