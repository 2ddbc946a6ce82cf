"""``luciole chef``: recipes to models and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import luciole
from luciole.schema.reader import dialect_of
from tests.tools.running import call, left_behind, spawn

Capture = pytest.CaptureFixture[str]
RECIPE = """\
operand { name: "x" type: FLOAT32 shape { dim: 1 dim: 4 } }
operand {
  name: "w" type: FLOAT32 shape { dim: 3 dim: 4 }
  filler { tag: "gaussian" arg: "0" arg: "1" }
}
operand { name: "y" type: FLOAT32 shape { dim: 1 dim: 3 } }
operation {
  type: "FullyConnected" input: "x" input: "w" input: "" output: "y"
  fullyconnected_options { activation: RELU }
}
input: "x"
output: "y"
"""


@pytest.fixture
def recipe(folder: Path) -> Path:
    path = folder / "net.recipe"
    path.write_text(RECIPE)
    return path


@pytest.mark.parametrize("target", ["net.circle", "net.tflite"])
def test_a_recipe_becomes_a_file_of_the_names_format(
    capsys: Capture, recipe: Path, target: str
) -> None:
    outcome = call(capsys, "chef", recipe, "-o", target)
    size = Path(target).stat().st_size
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"{target}: {size} B, 1 FULLY_CONNECTED\n"
    dialect = dialect_of(Path(target).read_bytes())
    assert dialect is not None
    assert target.endswith(dialect.name)
    assert call(capsys, "verify", target).code == 0


def test_the_seed_makes_the_same_file(capsys: Capture, recipe: Path) -> None:
    contents = []
    for seed in ("0", "7", "7"):
        call(capsys, "chef", recipe, "-o", "net.circle", "--seed", seed)
        contents.append(Path("net.circle").read_bytes())
    assert contents[1] == contents[2] != contents[0]


def test_constants_take_what_the_user_allows(capsys: Capture, recipe: Path) -> None:
    command = ("chef", recipe, "-o", "net.circle", "--constants-limit")
    assert call(capsys, *command, "48").code == 0
    text = call(capsys, *command, "47").error(1)
    assert text == (
        "net.recipe: line 4: operand 'w': 12 elements of FLOAT32 take 48 bytes, a recipe's "
        "constants may take 47 more (luciole chef --constants-limit)"
    )


def test_the_way_there_and_back(capsys: Capture, recipe: Path) -> None:
    call(capsys, "chef", recipe, "-o", "net.circle")
    text = call(capsys, "chef", "--reverse", "net.circle").out
    outcome = call(capsys, "chef", "--reverse", "net.circle", "-o", "again.recipe")
    assert outcome.out == "again.recipe: 3 operands, 1 operations\n"
    assert Path("again.recipe").read_text() == text
    call(capsys, "chef", "again.recipe", "-o", "again.circle")
    assert Path("again.circle").read_bytes() == Path("net.circle").read_bytes()


def test_large_constants_are_spelled_out_when_asked_for(capsys: Capture, folder: Path) -> None:
    short = call(capsys, "chef", "--reverse", "model.circle")
    assert "not in the recipe: the description; the values of large constants" in short.err
    assert 'tag: "gaussian"' in short.out
    whole = call(capsys, "chef", "--reverse", "model.circle", "--values", "all")
    assert "gaussian" not in whole.out
    assert whole.out.count('arg: "') == sum(
        v.data.size for v in luciole.load("model.circle").graph.values if v.data is not None
    )
    assert call(capsys, "chef", "--reverse", "model.circle", "--values", "1000").out == whole.out


def test_json(capsys: Capture, recipe: Path) -> None:
    found = json.loads(call(capsys, "chef", recipe, "-o", "net.circle", "--json").out)
    size = Path("net.circle").stat().st_size
    assert found == {
        "output": "net.circle",
        "bytes": size,
        "operators": {"FULLY_CONNECTED": 1},
        "findings": [],
    }
    found = json.loads(call(capsys, "chef", "--reverse", "net.circle", "--json").out)
    assert found["recipe"].startswith('name: "main"\noperand {')
    assert found["notes"] == []


def test_standard_input_and_output(recipe: Path) -> None:
    spawn("chef", "-", "-o", "net.circle", stdin=RECIPE.encode())
    outcome = spawn("chef", "--reverse", "-", stdin=Path("net.circle").read_bytes())
    assert outcome.code == 0
    assert 'type: "FullyConnected"' in outcome.out


def test_a_wrong_model_is_cooked_with_a_warning(capsys: Capture, recipe: Path) -> None:
    recipe.write_text(RECIPE + 'output: "x2" operand { name: "x2" type: INT8 }')
    outcome = call(capsys, "chef", recipe, "-o", "net.circle")
    assert outcome.code == 0
    assert outcome.err == "luciole: warning: subgraphs[0].outputs: nothing computes 'x2'\n"
    assert call(capsys, "verify", "net.circle").code == 1


def test_a_recipe_is_a_model_for_other_programs(capsys: Capture, recipe: Path) -> None:
    assert "Sub-Graph: #0 main" in call(capsys, "dump", recipe).out
    assert call(capsys, "verify", recipe).code == 0
    assert call(capsys, "import", recipe, "-o", "net.circle").code == 0
    outcome = spawn("dump", "-", stdin=RECIPE.encode())
    assert "T(0:1) FLOAT32 (3, 4) B(1) w" in outcome.out


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["net.recipe"], 2, "-o FILE is needed: a .circle, .tflite or .onnx file"),
        (["net.recipe", "-o", "x.pt"], 2, "x.pt: can write .circle, .tflite and .onnx, not .pt"),
        (["net.recipe", "-o", "none/x.circle"], 1, "there is no folder none"),
        (["net.recipe", "-o", "x.circle", "--seed", "-1"], 2, "--seed takes a number from 0 on"),
        (["net.recipe", "--reverse", "--seed", "3"], 2, "--seed is for recipes: --reverse makes"),
        (["net.recipe", "-o", "x.circle", "--values", "3"], 2, "--values is for --reverse"),
        (["none.recipe", "-o", "x.circle"], 1, "none.recipe: No such file or directory"),
        (["model.circle", "-o", "x.circle"], 1, "model.circle: no text: a recipe is needed; luci"),
        (
            ["bad.recipe", "-o", "x.circle"],
            1,
            "bad.recipe: line 2: operator 'Sparkle' is not",
        ),
        (
            ["--reverse", "net.recipe", "--values", "x"],
            2,
            "--values takes a number or all",
        ),
        (["--reverse", "config.json"], 1, "config.json: not a .circle, .tflite, .recipe"),
        (["--reverse", "model.circle", "-o", "none/x.recipe"], 1, "cannot write none/x.recipe"),
    ],
)
def test_chef_refuses_what_it_cannot_cook(
    capsys: Capture, recipe: Path, argv: list[str], code: int, message: str
) -> None:
    Path("bad.recipe").write_text('name: "x"\noperation { type: "Sparkle" }\n')
    before = left_behind(recipe.parent)
    text = call(capsys, "chef", *argv)
    assert text.code == code
    assert message in text.err.splitlines()[-1]
    assert text.err.splitlines()[-1].startswith("luciole: error: ")
    assert left_behind(recipe.parent) == before


def test_chef_refuses_an_operator_that_tflite_has_not(capsys: Capture, recipe: Path) -> None:
    recipe.write_text(
        'operand { name: "x" type: FLOAT32 } operation { type: "InstanceNorm" '
        'input: "x" output: "x2" } operand { name: "x2" type: FLOAT32 }'
    )
    text = call(capsys, "chef", recipe, "-o", "net.tflite").error(3)
    assert text == "tflite has no operator INSTANCE_NORM; save it as .circle"
    assert not Path("net.tflite").exists()
