"""``luciole build``: jobs in TOML, and configurations of onecc."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import luciole
from tests.compiler_support import needs_compiler
from tests.tools.running import call, left_behind

Capture = pytest.CaptureFixture[str]

JOB = """
[[step]]
import = "model.circle"
output = "net.tflite"

[[step]]
optimize = "net.tflite"
output = "opt.tflite"
preset = "o1"
verify = "train.npy"

[[step]]
quantize = "opt.tflite"
output = "int8.tflite"
scheme = "int8"
data = "train.npy"
save_ranges = "ranges.json"
tune = false

[[step]]
eval = "int8.tflite"
data = "test.npz:x_test"
labels = "y_test"

[[step]]
compile = "int8.tflite"
output-folder = "c"
"""

CFG = """
; as ONE's template has it
[onecc]
one-import-tf=False
one-import-tflite=True
one-parition=False
one-quantize=True
one-optimize=True
one-pack=True
one-codegen=True
include=O1

[Environment]
ONECC_ENV="ONECC"

[one-import-tflite]
# mandatory
input_path=model.tflite
output_path=model.circle

[one-optimize]
input_path=model.circle
output_path=model.opt.circle
generate_profile_data=False

[one-quantize]
input_path=model.opt.circle
output_path=model.q8.circle
input_data=train.npy
input_data_format=
granularity=layer

[one-pack]
input_path=model.q8.circle
output_path=packages

[one-codegen]
backend=dummy
command=-o net.bin model.q8.circle
"""


@pytest.fixture
def job(folder: Path) -> Path:
    path = folder / "job.toml"
    path.write_text(JOB)
    return path


@needs_compiler
def test_a_job_runs_from_import_to_compile(capsys: Capture, job: Path) -> None:
    report = json.loads(call(capsys, "build", "job.toml", "--json").out)["steps"]
    assert [one["program"] for one in report] == [
        *("import", "optimize", "quantize", "eval", "compile")
    ]
    assert {one["exit_code"] for one in report} == {0}
    assert report[0]["report"]["output"] == "net.tflite"
    assert report[3]["report"]["records"] == 60
    names = left_behind(job.parent)
    assert names >= {"net.tflite", "opt.tflite", "int8.tflite", "ranges.json", "c"}


def test_a_dry_run_prints_commands_and_writes_nothing(capsys: Capture, job: Path) -> None:
    before = left_behind(job.parent)
    lines = call(capsys, "build", "job.toml", "--dry-run").out.splitlines()
    assert lines[0] == "luciole import model.circle --output net.tflite"
    assert lines[2].endswith("--scheme int8 --data train.npy --save-ranges ranges.json")
    assert len(lines) == 5
    assert json.loads(call(capsys, "build", "job.toml", "--dry-run", "--json").out)["steps"][3] == [
        *("eval", "int8.tflite", "--data", "test.npz:x_test", "--labels", "y_test")
    ]
    assert left_behind(job.parent) == before


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('preset = "o1"', 'preset = "o3"', "step 2 (optimize): argument --preset: invalid choice"),
        (
            'preset = "o1"',
            'prset = "o1"',
            "step 2 (optimize): prset is no option, did you mean preset",
        ),
        ('scheme = "int8"', "scheme = true", "step 3 (quantize): scheme takes a value, found true"),
        ("tune = false", "custom = 2021-01-01", "step 3 (quantize): custom is a text, a number"),
        ("tune = false", 'simulate = "yes"', "step 3 (quantize): simulate is true or false"),
        (
            'labels = "y_test"',
            'labels = ["a", "b"]',
            "step 4 (eval): labels takes one value, found 2",
        ),
        ('labels = "y_test"', "limit = 0.5", "step 4 (eval): argument --limit: invalid int value"),
        ('eval = "', 'evl = "', "step 4 begins with evl, which is no program, did you mean eval?"),
        ('eval = "', 'build = "', "step 4 begins with build, which is no program"),
        (
            'eval = "int8',
            'eval = "nt8',
            "step 4 (eval): nt8.tflite is not there, and no step before",
        ),
        ("test.npz", "tst.npz", "step 4 (eval): tst.npz:x_test is not there, and no step before"),
        ("output-folder =", "output-foldr =", "step 5 (compile): output-foldr is no option"),
        ("[[step]]\ncompile", "[[steps]]\ncompile", "steps is not understood: a job has [[step]]"),
        ('preset = "o1"', "preset = o1", "(at line 9, column 10)"),
        (JOB, "", "a job has steps, each of which begins with [[step]]"),
        (JOB, "[[step]]", "step 1: a program is missing"),
    ],
)
def test_build_refuses_before_anything_runs(
    capsys: Capture, job: Path, old: str, new: str, sentence: str
) -> None:
    assert old in JOB
    job.write_text(JOB.replace(old, new, 1))
    before = left_behind(job.parent)
    text = call(capsys, "build", "job.toml").error(2)
    assert text.startswith("job.toml: ")
    assert sentence in text
    assert left_behind(job.parent) == before


def test_build_refuses_a_file_that_is_not_there(capsys: Capture, folder: Path) -> None:
    for name in ("none.toml", "none.cfg"):
        assert call(capsys, "build", name).error(2) == f"{name}: No such file or directory"


def test_steps_behind_one_that_fails_do_not_run(capsys: Capture, job: Path) -> None:
    job.write_text(JOB.replace('x_test"', 'none"', 1))
    outcome = call(capsys, "build", "job.toml")
    assert outcome.code == 1
    last = outcome.err.splitlines()[-1]
    assert (
        last
        == "luciole: job.toml: step 4 (eval): luciole eval ended with 1, and compile did not run"
    )
    assert not (job.parent / "c").exists()


def test_options_that_repeat_and_schemes_with_options_of_their_own(
    capsys: Capture, folder: Path
) -> None:
    Path("job.toml").write_text(
        '[[step]]\nquantize = "model.circle"\noutput = "a.circle"\nscheme = "minifloat"\n'
        'exponent = 4\nmantissa = 3\n[[step]]\nrun = "a.circle"\no = "y.npz"\n'
        'data = "random:2"\noutput = ["fc1", "fc2"]\n[[step]]\n'
        'diff = ["model.circle", "a.circle"]\ndata = "train.npy"\nlimit = 5\n'
    )
    lines = call(capsys, "build", "job.toml", "--dry-run").out.splitlines()
    assert "--scheme minifloat --exponent 4 --mantissa 3" in lines[0]
    assert lines[1].endswith("-o y.npz --data random:2 --output fc1 --output fc2")
    assert lines[2] == "luciole diff model.circle a.circle --data train.npy --limit 5"


@pytest.fixture
def cfg(folder: Path) -> Path:
    luciole.save(luciole.load("model.circle"), "model.tflite")
    path = folder / "net.cfg"
    path.write_text(CFG)
    return path


def test_a_configuration_of_onecc_runs(capsys: Capture, cfg: Path) -> None:
    outcome = call(capsys, "build", "net.cfg")
    assert outcome.code == 0
    said = [line for line in outcome.err.splitlines() if line.startswith("net.cfg")]
    assert said == [
        "net.cfg: [Environment] ONECC_ENV is left out: it is for a backend",
        "net.cfg: [one-codegen] has no counterpart: a backend's own compiler writes it; "
        "`luciole compile` writes C99; it is left out",
    ]
    commands = [line.split(": ", 1)[1] for line in outcome.err.splitlines() if line[:5] == "step "]
    assert [command.split()[1] for command in commands] == [
        "import",
        "optimize",
        "quantize",
        "pack",
    ]
    assert "remove_dead,infer_shapes,o1" in commands[1]
    assert (cfg.parent / "packages" / "model.q8" / "metadata" / "MANIFEST").exists()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "granularity=layer",
            "granularty=layer",
            "[one-quantize] granularty: one-quantize has no such",
        ),
        ("granularity=layer", "ampq=True", "[one-quantize]: --ampq has no counterpart: `luciole"),
        ("one-parition=False", "one-parition=True", "[onecc] one-parition is no step"),
        (
            "one-import-tf=False",
            "one-import-bcq=True",
            "[one-import-bcq] has no counterpart: TensorFlow",
        ),
        ("[one-pack]", "[one-unpack]", "has no section [one-pack]"),
        ("[onecc]", "[twocc]", "has no section [onecc]"),
        ("include=O1", "include=O7", "[one-optimize]: -O 7 has no counterpart"),
        ("include=O1", "include=MY", "[one-optimize] include: MY is no group"),
        ("input_path=model.tflite", "input_path=mdl.tflite", "mdl.tflite is not there"),
        ("input_path=model.tflite", "input_path", "[line 18]"),
        ("generate_profile_data=False", "generate_profile_data=True", "no tables of an operator"),
    ],
)
def test_build_refuses_a_configuration_in_a_sentence(
    capsys: Capture, cfg: Path, old: str, new: str, sentence: str
) -> None:
    assert old in CFG
    cfg.write_text(CFG.replace(old, new, 1))
    before = left_behind(cfg.parent)
    outcome = call(capsys, "build", "net.cfg")
    assert outcome.code == 2
    assert sentence in outcome.err.splitlines()[-1]
    assert left_behind(cfg.parent) == before
