"""Programs of ONE's by their own names: what each option becomes, and that the table is right."""

from __future__ import annotations

import configparser
from collections.abc import Iterator
from pathlib import Path

import pytest

import luciole
from luciole.ir import TensorType
from luciole.ir.passes.registry import all_passes
from luciole.tools.main import PROGRAMS, parser_of
from luciole.tools.one.alias import Alias, Option
from luciole.tools.one.command import main, translated
from luciole.tools.one.switches import SAME, SWITCHES
from luciole.tools.one.table import ALIASES, WITHOUT, forms, names
from tests.networks import random, two_inputs
from tests.tools.running import Outcome, call, left_behind, spawn

Capture = pytest.CaptureFixture[str]
ENTRY = "luciole.tools.one.command:main"
every_alias = pytest.mark.parametrize("alias", ALIASES, ids=lambda a: f"{a.name}{a.when}")


def one(capsys: Capture, name: str, *words: str) -> Outcome:
    return call(capsys, *words, main=lambda argv: main(argv, name))


def lines(name: str, words: str) -> list[str]:
    """The commands of ours, each in a line."""
    return [" ".join([c.program, *c.words]) for c in translated(name, words.split())]


def heres(option: Option) -> Iterator[str]:
    """All words that stand for an option."""
    here = option.here
    yield from (
        here.values() if isinstance(here, dict) else [here] if isinstance(here, str) else ()
    )
    yield option.absent


@every_alias
def test_options_stand_for_options_that_there_are(alias: Alias) -> None:
    assert alias.program in PROGRAMS
    for program, options in ((alias.program, alias.options), *_behind(alias)):
        parser = parser_of(program)
        operands = {a.metavar for a in parser._actions if not a.option_strings}
        for option in options:
            for here in heres(option):
                for word in here.split():
                    known = word in parser._option_string_actions
                    assert known or not word.startswith("-"), (option.name, word)
                if here and not here.startswith("-"):
                    assert here in operands


def _behind(alias: Alias) -> list[tuple[str, tuple[Option, ...]]]:
    return [] if alias.then is None else [(alias.then.program, alias.then.options)]


def test_every_option_without_a_counterpart_says_why() -> None:
    for alias in ALIASES:
        for option in alias.all_options():
            assert option.note or option.here is not None, (alias.name, option.name)
    assert all(reason and not reason.endswith(".") for reason in WITHOUT.values())


def test_switches_are_passes() -> None:
    assert set(SAME) <= all_passes().keys()
    named = [h.split()[1] for s in SWITCHES for h in heres(s) if h.startswith("--passes")]
    assert {name for text in named for name in text.split(",")} <= all_passes().keys()


def test_the_entry_points_are_those_of_the_table() -> None:
    parser = configparser.ConfigParser()
    parser.read(Path(__file__).parents[2] / "setup.cfg")
    entries = [
        e.split(" = ") for e in parser["options.entry_points"]["console_scripts"].split("\n")
    ]
    assert [e[0] for e in entries if e[1:] == [ENTRY]] == names()


@pytest.mark.parametrize(
    ("name", "words", "commands"),
    [
        (
            "one-import-tflite",
            "--input_path a.tflite --output_path b.circle",
            ["import a.tflite --output b.circle"],
        ),
        (
            "one-import-onnx",
            "-i a.onnx -o b.circle --keep_io_order --unroll_lstm",
            ["import a.onnx --output b.circle"],
        ),
        (
            "one-optimize",
            "-i a -o b -O 1 --convert_nchw_to_nhwc --fold_add_v2 -V",
            [
                "optimize --passes remove_dead,infer_shapes,o1,convert_nchw_to_nhwc,"
                "resolve_customop_add,fold_constants a --output b --explain"
            ],
        ),
        (
            "circle2circle",
            "--dynamic_batch_to_single_batch a b --fuse_gelu",
            ["optimize --passes remove_dead,infer_shapes,fuse_gelu a --output b --batch 1"],
        ),
        (
            "one-quantize",
            "-i a -o b -d d.h5 -f h5 --quantized_dtype int16 --granularity channel "
            "--input_type float32 --min_percentile 0.1 --max_percentile 99.9",
            [
                "quantize --compatible one --no-proof a --output b --data d.h5 --scheme int16 "
                "--granularity channel --input-type float32 --ranges record_percentile:99.9"
            ],
        ),
        (
            "one-quantize",
            "-i a -o b --evaluate_result --test_data t.h5 --print_mae --print_top1_match",
            [
                "quantize --compatible one --no-proof a --output b --data random:3",
                "diff a b --data t.h5 --print mae,top1",
            ],
        ),
        ("one-quantize", "--fake_quantize -i a -o b", ["quantize --simulate a --output b"]),
        (
            "one-quantize",
            "--requantize --input_model_dtype int8 --quantized_dtype uint8 -i a -o b",
            ["quantize --requantize uint8 a --output b"],
        ),
        (
            "circle-quantizer",
            "--quantize_weights float32 int8 channel a b",
            ["quantize --no-proof a --output b --compatible one --scheme weights"],
        ),
        (
            "circle-eval-diff",
            "--first_input_model A --second_input_model B --first_input_data A.h5 "
            "--second_input_data A.h5 --input_data_format h5 --metric MAE",
            ["diff A B --data A.h5 --print mae"],
        ),
        (
            "record-minmax",
            "--input_model a --output_model b --max_percentile 95 --min_percentile 5",
            [
                "quantize --compatible one --step ranges --no-proof a --output b --data random:3 "
                "--ranges record_percentile:95"
            ],
        ),
        (
            "circle-partitioner",
            "--part_file net.part --input_file net.circle --default cpu",
            ["split --partition net.part net.circle --default cpu"],
        ),
        (
            "circle-opselector",
            "--by_id 1-3,5 --by_name a,b in out",
            ["extract in -o out --number 1-3,5 --name a --name b"],
        ),
        (
            "circle-resizer",
            "--input_path a --output_path b --input_shapes [2,20]",
            ["resize a -o b --shape [2,20]"],
        ),
        ("circle-interpreter", "a in out", ["run a --data each:in -o each:out"]),
        ("circle-eval-diff", "--first_model A --second_model B", ["diff A B --data random:3"]),
        ("one-pack", "-i a.circle -o p", ["pack a.circle --output p"]),
        ("onecc", "-C net.cfg", ["build net.cfg"]),
    ],
)
def test_a_command_becomes_ours(name: str, words: str, commands: list[str]) -> None:
    assert lines(name, words) == commands


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        ("one-optimize", "-i a -o b --fuse_bcq", "--fuse_bcq has no counterpart: BCQ operators"),
        ("one-optimize", "-i a -o b -O 2", "-O 2 has no counterpart: O1 alone"),
        ("one-optimize", "-i a", "the following arguments are required: -o/--output_path"),
        (
            "one-optimize",
            "-i a -o b --fuse_glu",
            "--fuse_glu is no option, did you mean --fuse_gelu?",
        ),
        (
            "one-quantize",
            "-i a -o b --mode moving_average",
            "--mode moving_average has no counterpart",
        ),
        ("one-quantize", "-i a -o b --quantized_dtype int4", "there are uint8, int16"),
        ("one-quantize", "-i a -o b --max_percentile 99.9", "both are to add up to 100"),
        ("one-quantize", "-i a -o b --max_percentile x", "--max_percentile is 'x': a number"),
        ("one-quantize", "-i a -o b --print_mae", "--print_mae goes with --evaluate_result"),
        ("one-quantize", "-i a -o b -C none.cfg", "none.cfg: No such file"),
        (
            "circle-eval-diff",
            "--first_model a --second_model b --first_input_data c",
            "the same file",
        ),
        ("circle-quantizer", "a b --requantize uint8 int8", "--requantize uint8 int8 has no"),
        ("circle-quantizer", "a b", "--fake_quantize is needed, found none"),
        (
            "circle-quantizer",
            "a b --fake_quantize --requantize int8 uint8",
            "found --requantize and --fake_quantize",
        ),
    ],
)
def test_one_refuses_in_a_sentence(
    capsys: Capture, folder: Path, name: str, words: str, sentence: str
) -> None:
    before = left_behind(folder)
    text = one(capsys, name, *words.split()).error(2)
    assert sentence in text
    assert text.endswith(f"({name} --help says more)")
    assert left_behind(folder) == before


@pytest.mark.parametrize("name", names())
def test_help_names_every_option_and_its_counterpart(capsys: Capture, name: str) -> None:
    outcome = one(capsys, name, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"luciole {forms(name)[-1].program}" in outcome.out
    for option in forms(name)[-1].options:
        assert option.name in outcome.out


def test_help_of_one_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom luciole.tools.one.command import main\n"
        "try: main(['--help'], 'one-optimize')\n"
        "except SystemExit: pass\n"
        "print('HEAVY', sorted({'numpy', 'numba', 'luciole.ir', 'h5py'} & sys.modules.keys()))\n"
    )
    assert spawn(program=["-c", script]).out.splitlines()[-1] == "HEAVY []"


def test_a_section_of_a_configuration_and_words_that_are_taken_instead(folder: Path) -> None:
    Path("net.cfg").write_text(
        "[one-optimize]\ninput_path=a\noutput_path=b\ninclude=O1\nfuse_gelu=True\nfold_mul=False\n"
        "mute_warnings=\n[mine]\ninput_path=~/c\noutput_path=d\n"
    )
    (command,) = lines("one-optimize", "-C net.cfg -o z --fuse_rope")
    assert command.endswith(",o1,fuse_gelu,fuse_rope a --output z")
    (command,) = lines("one-optimize", "-C net.cfg -S mine")
    assert command.endswith(f" {Path.home()}/c --output d")


def test_a_script_of_ones_runs(capsys: Capture, folder: Path) -> None:
    luciole.save(luciole.load("model.circle"), "net.tflite")
    for name, words in (
        ("one-import-tflite", "--input_path net.tflite --output_path net.circle"),
        ("one-optimize", "--input_path net.circle --output_path net.opt.circle -O 1"),
        ("one-quantize", "-i net.opt.circle -o net.q.circle -d train.npy --output_type float32"),
        ("circle-quantizer", "--fake_quantize net.q.circle net.fake.circle"),
    ):
        assert one(capsys, name, *words.split()).code == 0
    assert luciole.load("net.q.circle").graph.inputs[0].dtype == TensorType.UINT8
    words = "--first_model net.circle --second_model net.fake.circle --first_input_data train.npy"
    again = "--second_input_data train.npy --print_mae --print_top1_match"
    printed = one(capsys, "circle-eval-diff", *words.split(), *again.split()).out.splitlines()
    assert printed[0] == "Mean Absolute Error (MAE)"
    assert float(printed[1].removeprefix("MAE for fc2 is ")) < 0.05
    assert float(printed[3].rpartition(" ")[2]) > 0.9


def test_the_steps_of_one_quantize_one_by_one(capsys: Capture, folder: Path) -> None:
    kind = "float32 uint8 channel"
    for name, words in (
        ("one-quantize", "-i model.circle -o whole.circle -d train.npy --granularity channel"),
        ("circle-quantizer", f"--quantize_dequantize_weights {kind} model.circle w.circle"),
        ("record-minmax", "--input_model w.circle --input_data train.npy --output_model m.circle"),
        ("circle-quantizer", f"--quantize_with_minmax {kind} m.circle q.circle"),
    ):
        assert one(capsys, name, *words.split()).code == 0
    assert Path("q.circle").read_bytes() == Path("whole.circle").read_bytes()


def test_files_of_bytes_for_each_input_and_output(capsys: Capture, folder: Path) -> None:
    x = random(3, 1, 20)
    Path("net.input0").write_bytes(x.tobytes())
    assert one(capsys, "circle-interpreter", "model.circle", "net.input", "net.output").code == 0
    (expected,) = luciole.Interpreter("model.circle").run(x).values()
    assert Path("net.output0").read_bytes() == expected.tobytes()
    before = left_behind(folder)
    text = one(capsys, "circle-interpreter", "model.circle", "net.inpt", "other").error(1)
    assert text == "each:net.inpt: net.inpt0: no such file or folder"
    Path("net.input0").write_bytes(b"short")
    text = one(capsys, "circle-interpreter", "model.circle", "net.input", "other").error(1)
    assert "a raw record has 80 for 'x' bytes, found 5" in text
    assert left_behind(folder) == before


def test_another_name_is_refused(capsys: Capture) -> None:
    text = one(capsys, "one-paint").error(2)
    assert text.startswith("one-paint is no program of ONE's: there are one-import-tflite, ")


def test_operators_are_selected_and_inputs_resized(capsys: Capture, folder: Path) -> None:
    words = ("--by_id", "0-1", "model.circle", "front.circle")
    assert one(capsys, "circle-opselector", *words).code == 0
    assert [op.name for op in luciole.load("front.circle").graph.ops] == ["fc1", "act1"]
    shape = ("--input_shapes", "[3,20]")
    files = ("--input_path", "front.circle", "--output_path", "three.circle")
    assert one(capsys, "circle-resizer", *files, *shape).code == 0
    assert luciole.load("three.circle").graph.outputs[0].shape[0] == 3
    text = one(capsys, "circle-resizer", *files, "--input_shapes", "[3,20],[3,20]").error(2)
    assert "--shape is [3,20]: NAME=SHAPE is needed, inputs are 'x'" in text
    text = one(capsys, "circle-resizer", *files, "--input_shapes", "[3,wide]").error(2)
    assert "a shape is written as 1,32,32,3" in text


def test_several_inputs_are_resized_in_their_order(capsys: Capture, folder: Path) -> None:
    luciole.save(two_inputs(), "two.circle")
    shapes = [v.dims[1:] for v in two_inputs().graph.inputs]
    text = ",".join(f"[3,{','.join(map(str, shape))}]" for shape in shapes)
    files = ("--input_path", "two.circle", "--output_path", "three.circle")
    assert one(capsys, "circle-resizer", *files, "--input_shapes", text).code == 0
    resized = luciole.load("three.circle").graph
    assert [v.dims for v in resized.inputs] == [(3, *shape) for shape in shapes]
