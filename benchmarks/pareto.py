"""Accuracy against bytes: every format of ours beside other quantizers, network by network.

    python3 -m benchmarks.pareto [--network resnet8,mbnet] [--formats int:w8a8,int:w2a8]
                                 [--records N] [--images N] [--rounds N] [--plot FILE.png]

Each file is made from the same training images by the default command of its format, read back from
its bytes and judged on test images (all 5,000 unless --images says so). A star marks the files that
no other one beats in both bytes and right answers. Beside ours are TFLite's converter (int8), AI
Edge Quantizer (int8, 4-bit weights under int8, dynamic) and onnxruntime (int8 in QDQ form, by
output), where they are installed. Networks, data and times are those of benchmarks/uniform.py.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import luciole
from benchmarks.accuracy_table import figure_type, markdown
from benchmarks.machine import machine
from benchmarks.uniform import OURS, PACKAGES, Judge, Make, Row, Subject, Way, measured
from benchmarks.uniform_peers import AI_EDGE, CONVERTER, ORT, ai_edge, converter, dynamic, static
from luciole.exporters import to_bytes
from luciole.ir import Array, Model
from luciole.ir.passes.strip_names import strip_names
from luciole.tools.common.console import say

FORMATS = (
    *("int:w8a16", "int:w8a8", "int:w4a8", "int:w3a8", "int:w2a8", "int:w1a8"),
    *("weights:int4", "levels:w4a4", "levels:w2a4", "levels:w2a2"),
)
_IN_LITERT = ("int:w8a16", "int:w8a8", "int:w4a8", "weights:int4")


def ways(formats: Sequence[str]) -> Iterator[Way]:
    """List our formats, and the files of others."""
    for name in formats:
        yield Way(name, OURS, _ours(name), in_litert=name in _IN_LITERT)
    yield Way("int8", CONVERTER, converter)
    yield Way("int8", AI_EDGE, partial(ai_edge, recipe=static()))
    yield Way("w4a8", AI_EDGE, partial(ai_edge, recipe=static(bits=4)))
    yield Way("dynamic", AI_EDGE, partial(ai_edge, recipe=dynamic()))
    yield Way("int8 QDQ", ORT, onnxruntime, in_litert=False)


def _ours(scheme: str) -> Make:
    """Quantize here, and leave out names that nothing reads, as other quantizers' files do not."""

    def make(model: Model, records: Array) -> bytes:
        data = {model.graph.inputs[0].name: records}
        result = luciole.quantize(model, data, scheme=scheme, proof=False)
        strip_names(result.model)
        return to_bytes(result.model, "tflite" if scheme in _IN_LITERT else "circle")

    return make


def onnxruntime(model: Model, records: Array) -> bytes:
    """Quantize to INT8 between QuantizeLinear and DequantizeLinear, a scale for each output."""
    quantization = import_module("onnxruntime.quantization")
    name = model.graph.inputs[0].name
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        luciole.save(model, source)
        quantization.quantize_static(
            *(str(source), str(path), _reader(quantization, name, records)),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=quantization.QuantType.QInt8,
        )
        return path.read_bytes()


def _reader(quantization: Any, name: str, records: Array) -> Any:
    """Feed records one by one."""
    feeds = ({name: record[None]} for record in records)

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]  # has no types
        """Gives the next record, None behind the last."""

        def get_next(self) -> dict[str, Array] | None:
            return next(feeds, None)

    return Reader()


def best(rows: Sequence[Row]) -> list[Row]:
    """Find the rows that no other one beats in both bytes and right answers."""
    return [row for row in rows if not any(_beats(other, row) for other in rows)]


def _beats(one: Row, other: Row) -> bool:
    as_good = one.bytes <= other.bytes and one.top1 >= other.top1
    return as_good and (one.bytes, one.top1) != (other.bytes, other.top1)


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Lay out a line for each file, the smallest first."""
    front = best(rows)
    grid = [["", "made by", "format", "bytes", "top-1", "agree", "s", "luciole, us", "LiteRT, us"]]
    for row in sorted(rows, key=lambda r: r.bytes):
        times = ("" if t is None else f"{t:.0f}" for t in (row.luciole_us, row.litert_us))
        figures = (f"{row.bytes:,}", f"{row.top1:.2f}", f"{row.agree:.2f}", f"{row.seconds:.1f}")
        grid.append(["*" if row in front else "", row.maker, row.name, *figures, *times])
    return grid


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw right answers against bytes, a picture for each network. Raises LucioleError where
    matplotlib is missing.
    """
    networks = list(dict.fromkeys(row.network for row in rows))
    figure = figure_type()(figsize=(6.4 * len(networks), 4.8), layout="constrained")
    for place, network in enumerate(networks, 1):
        axes = figure.add_subplot(1, len(networks), place)
        _picture(axes, [row for row in rows if row.network == network])
        axes.set(title=network, xlabel="file size in KB", ylabel="right answers in %", xscale="log")
    figure.savefig(path, dpi=120)


def _picture(axes: Any, rows: Sequence[Row]) -> None:
    for marker, maker in zip("osD^vP", dict.fromkeys(row.maker for row in rows), strict=False):
        own = [row for row in rows if row.maker == maker]
        label, face = maker or "float", None if maker in ("", OURS) else "none"
        sizes, right = [row.bytes / 1000 for row in own], [row.top1 for row in own]
        axes.plot(sizes, right, marker, label=label, mfc=face)
        for row in own:
            place = (row.bytes / 1000, row.top1)
            axes.annotate(row.name, place, (4, -9), textcoords="offset points", fontsize=6)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")


def parser() -> argparse.ArgumentParser:
    """The program's arguments."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--network", default="resnet8,mbnet", help="of resnet8,mbnet,uneven")
    made.add_argument("--formats", default=",".join(FORMATS), help=f"ours ({','.join(FORMATS)})")
    made.add_argument("--records", type=int, default=1000, help="training images (1000)")
    made.add_argument("--images", type=int, help="test images (all)")
    made.add_argument("--rounds", type=int, default=200, help="calls timed (200; 0 for none)")
    made.add_argument("--plot", type=Path, metavar="FILE.png", help="also draw them")
    return made


def main() -> None:
    """Print the tables."""
    arguments = parser().parse_args()
    draws = dict.fromkeys((OURS, CONVERTER, AI_EDGE, ORT), (0,))
    rows: list[Row] = []
    for name in arguments.network.split(","):
        judge = Judge.of(Subject.read(name, arguments.images), arguments.rounds)
        own = list(ways([word for word in arguments.formats.split(",") if word]))
        files = []
        for row in measured(judge, own, draws, arguments.records):
            say(f"{name}, {row.maker} {row.name}: {row.bytes:,} bytes, {row.top1:.2f} %")
            files.append(row)
        count = len(judge.subject.test)
        print(f"\n{name}, {arguments.records} records, {count} test images\n")
        print(markdown(table(files)), flush=True)
        rows += files
    print(f"\n{machine((*PACKAGES, ORT))}")
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
