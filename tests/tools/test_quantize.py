"""``luciole quantize``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import luciole.api
from luciole.ir import Array, Model, TensorType
from luciole.ir.ops.softmax import Softmax
from luciole.ir.quantization import stored_parameters
from luciole.lquantizer import QuantizeError
from luciole.tools import lquantizer
from luciole.tools.main import main
from luciole.tools.quantizing import program
from tests.lquantizer.networks import images
from tests.lquantizer.runs import weights_by_kind
from tests.networks import network, random

STATIC = "net.tflite -o q.tflite --scheme int8 --data data.npz:x_train"
SENSITIVE = "net.tflite --data data.npz:x_train --sensitivity"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    luciole.save(network(), tmp_path / "net.tflite")
    np.savez(tmp_path / "data.npz", x_train=random(3, 30, 20))
    return tmp_path


def run(words: str) -> int:
    return main(["quantize", *words.split()])


def test_integers_by_one_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("net.tflite -o q.tflite --scheme int8 --data data.npz:x_train --report r.json") == 0
    told = capsys.readouterr().out
    assert "int:w8a8" in told
    model = luciole.load(folder / "q.tflite")
    assert {op.kind for op in model.graph.ops} == {
        "QUANTIZE",
        "FULLY_CONNECTED",
        "TANH",
        "DEQUANTIZE",
    }
    report = json.loads((folder / "r.json").read_text())
    assert [layer["weight_bits"] for layer in report["layers"]] == [8, 8]
    assert all(layer["bytes_after"] < layer["bytes_before"] for layer in report["layers"])
    assert report["floats"] == []


@pytest.mark.parametrize("scheme", ["dynamic", "weights", "float16"])
def test_no_data_is_needed_for_weights_alone(folder: Path, scheme: str) -> None:
    assert run(f"net.tflite -o q.tflite --scheme {scheme}") == 0
    stored = {v.dtype for v in luciole.load(folder / "q.tflite").graph.values}
    assert (TensorType.FLOAT16 if scheme == "float16" else TensorType.INT8) in stored


def test_weights_of_4_bits_learn_from_data_where_there_are_some(folder: Path) -> None:
    words = "net.tflite --scheme dynamic4 --report r.json --no-proof"
    found = []
    for more in ("", " --data data.npz:x_train"):
        assert run(f"{words} -o q.tflite{more}") == 0
        layers = json.loads((folder / "r.json").read_text())["layers"]
        found.append([layer["mse"] is not None for layer in layers])
    assert found == [[False, False], [True, True]]


def test_levels_are_learned_unless_a_scheme_says_otherwise(folder: Path) -> None:
    for words in ("--encode_bits 2", "--scheme learned --encode_bits 2", "--scheme=learned"):
        assert run(f"net.tflite -o q.circle --data data.npz:x_train --no-proof {words}") == 0
        kinds = [op.kind for op in luciole.load(folder / "q.circle").graph.ops]
        assert "LQ_FULLY_CONNECTED" in kinds
        (folder / "q.circle").unlink()


def test_a_config_mixes_formats_and_says_which_scheme_the_others_have(folder: Path) -> None:
    rules = [{"name": "fc1", "scheme": "learned", "encode_bits": 2}]
    (folder / "c.json").write_text(json.dumps({"scheme": "int8", "layers": rules}))
    assert run("net.tflite -o q.circle --data data.npz:x_train --config c.json") == 0
    kinds = [op.kind for op in luciole.load(folder / "q.circle").graph.ops]
    assert kinds.count("LQ_FULLY_CONNECTED") == kinds.count("FULLY_CONNECTED") == 1
    stored = {v.dtype for v in luciole.load(folder / "q.circle").graph.values}
    assert TensorType.INT8 in stored


def test_what_levels_spare_becomes_integers_unless_floats_are_asked_for(folder: Path) -> None:
    luciole.save(images(), folder / "images.tflite")
    np.savez(folder / "images.npz", x=random(4, 20, 8, 8, 3))
    words = "--encode_bits 2 --data images.npz:x --no-proof"
    assert run(f"images.tflite -o new.circle {words}") == 0
    assert run(f"images.tflite -o float.circle {words} --spared float") == 0
    options = ["--input_model", "images.tflite", *words.split()]
    assert lquantizer.main([*options, "--output_model", "same.circle"]) == 0
    names = ("new", "float", "same")
    models = {name: luciole.load(folder / f"{name}.circle") for name in names}
    types = {name: weights_by_kind(model) for name, model in models.items()}
    assert types["same"] == types["new"] != types["float"]
    assert types["new"]["DEPTHWISE_CONV_2D"] == types["new"]["CONV_2D"] == {TensorType.INT8}
    assert types["float"]["FULLY_CONNECTED"] == {TensorType.FLOAT32}


def test_sensitivity_is_a_table_with_bars_and_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "net.tflite --scheme w4a8 --data data.npz:x_train --sensitivity"
    assert run(f"{words} --report s.json") == 0
    told = capsys.readouterr().out
    assert "only it" in told
    assert "\u2588" * 24 in told
    assert "the whole network: " in told
    found = json.loads((folder / "s.json").read_text())
    assert len(found["layers"]) == 2
    assert found["layers"][0]["only"]["noise"] >= found["layers"][1]["only"]["noise"]
    assert run(f"{words} --json") == 0
    assert json.loads(capsys.readouterr().out)["layers"] == found["layers"]


def test_mixed_bits_are_searched_by_one_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--scheme mixed --target_drop 5 --data data.npz:x_train --report r.json --no-proof"
    assert run(f"net.tflite -o q.tflite {words}") == 0
    told = capsys.readouterr().out
    assert "points of the answers changed where 5 may be" in told
    assert "6 records held back" in told
    judged = json.loads((folder / "r.json").read_text())["judged"]
    assert (judged["records"], judged["target"]) == (6, 5.0)


@pytest.mark.parametrize("suffix", ["circle", "tflite"])
def test_mixed_has_fewer_than_4_bits_where_luciole_alone_reads_the_file(
    folder: Path, suffix: str
) -> None:
    luciole.save(network((64, 32, 32, 1)), folder / "wide.circle")
    np.save(folder / "wide.npy", random(1, 40, 64))
    words = "--scheme mixed --target_drop 100 --data wide.npy --report r.json --no-proof"
    assert run(f"wide.circle -o q.{suffix} {words} --rounding nearest") == 0
    layers = json.loads((folder / "r.json").read_text())["layers"]
    bits = {layer["format"] for layer in layers}
    assert (bits == {"int:w4a8"}) is (suffix == "tflite")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("net.tflite --scheme int8 --data data.npz:x_train", "-o FILE"),
        (
            "net.tflite -o q.tflite --scheme mixed --least-bits 5 --data data.npz:x_train",
            "least_bits is 5: 1 to 4 are possible",
        ),
        ("net.tflite -o q.tflite --scheme int8 --data data.npz:x_train --sensitivity", "-o FILE"),
        ("net.tflite --scheme dynamic --sensitivity", "not of the scheme dynamic"),
        (f"{SENSITIVE} --config c.json", "of one scheme for all layers: name it by --scheme"),
        (f"{SENSITIVE} --scheme mixed", "of one scheme for all layers: mixed chooses several"),
        (f"{SENSITIVE} --compatible one", "not of ONE's numbers: leave --compatible out"),
        (f"{SENSITIVE} --metric m.py:f", "and the answers that stay: leave --metric out"),
        (f"{SENSITIVE} --labels y_train", "and the answers that stay: leave --labels out"),
        (f"{SENSITIVE} --tune 1", "neither trains nor writes a file: leave --tune out"),
        (f"{SENSITIVE} --save-ranges r.json", "writes a file: leave --save-ranges out"),
        (f"{SENSITIVE} --input-type int8", "writes a file: leave --input-type out"),
        (f"{SENSITIVE} --keep", "writes a file: leave --keep out"),
        (
            "net.tflite -o q.tflite --scheme int8 --target_drop 1 --data data.npz:x_train",
            "target_drop does not go",
        ),
        ("net.tflite -o q.tflite --scheme int9", "scheme is 'int9'"),
        ("net.tflite -o q.tflite --scheme int8", "learns from data: give --data"),
        (
            "net.tflite -o q.tflite --scheme int8 --ranges odd --data data.npz:x_train",
            "ranges is 'odd'",
        ),
        ("net.tflite -o q.txt --scheme dynamic", "q.txt"),
        ("net.tflite -o q.tflite --scheme dynamic --preprocess x/2", "--preprocess goes with --da"),
        ("net.tflite -o q.tflite --scheme float16 --calibration 9", "--calibration goes with --da"),
        ("net.tflite -o q.tflite --scheme dynamic --no-proof --keep", "--keep goes with a proof"),
        (
            "net.tflite -o q.onnx --scheme minifloat --search --data data.npz:x_train",
            "q.onnx: ONNX has no minifloats: .circle and .tflite do",
        ),
        (f"{STATIC} --tune 0", "at least 1 epoch"),
        (f"{STATIC} --tune 1 --qat 1", "--tune and --qat do not go together"),
        (f"{STATIC} --mirror", "--mirror goes with --tune EPOCHS or --qat EPOCHS"),
        (f"{STATIC} --labels y_train", "--labels goes with --qat EPOCHS"),
        (f"{STATIC} --tune_biases", "--tune-biases goes with --tune EPOCHS"),
        (f"{STATIC} --tune 1 --tune_data 0", "--tune-data is 0: at least 1 record is needed"),
        (f"{STATIC} --tune 1 --tune_data -3", "--tune-data is -3: at least 1 record is needed"),
        (f"{STATIC} --calibration 0", "--calibration is 0: at least 1 record is needed"),
        (f"{STATIC} --calibration -5", "--calibration is -5: at least 1 record is needed"),
        (f"{STATIC} --tune 1 --labels y_train", "--labels goes with --qat EPOCHS"),
        (f"{STATIC} --qat 1 --tune_weights", "--tune-weights goes with --tune EPOCHS"),
        (f"{STATIC} --qat 1 --label_weight 0.3", "--label-weight goes with --labels NAME"),
        (f"{STATIC} --tune 1 --gradient odd", "gradient is 'odd'"),
        (f"{STATIC} --tune 1 --tune_data nothing.npz", "nothing.npz"),
        ("net.tflite -o q.tflite --scheme dynamic --tune 1", "has no thresholds"),
        ("nothing.tflite -o q.tflite --scheme dynamic", "nothing.tflite"),
    ],
)
def test_refusals_are_a_sentence(
    folder: Path, words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) in (1, 2)
    told = capsys.readouterr().err
    assert sentence in told
    assert "Traceback" not in told
    assert not list(folder.glob("q.*"))


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("--tune 2 --tune_data 25 --learning_rate 1e-3 --tune_biases", 20 + 20 + 3),
        (
            "--qat 1 --labels data.npz:y_train --label_weight 0.2 --ranges moving_average",
            384 + 20 + 20,
        ),
    ],
)
def test_a_network_is_trained_on_the_way(
    folder: Path, words: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorflow")
    logits(folder)
    assert run(f"{STATIC} --symmetric --report r.json --no-proof {words}") == 0
    told = capsys.readouterr()
    assert f"training {count} numbers" in told.out + told.err
    report = json.loads((folder / "r.json").read_text())
    assert [e["epoch"] for e in report["finetuning"]] == list(range(int(words.split()[1]) + 1))
    kinds = {op.kind for op in luciole.load(folder / "q.tflite").graph.ops}
    assert kinds == {"QUANTIZE", "FULLY_CONNECTED", "TANH", "SOFTMAX", "DEQUANTIZE"}


def test_saved_ranges_are_those_that_training_found(folder: Path) -> None:
    pytest.importorskip("tensorflow")
    logits(folder)
    words = f"{STATIC} --rounding nearest --no-proof"
    assert run(f"{words} --save_ranges before.json") == 0
    assert run(f"{words} --tune 3 --learning_rate 0.02 --save_ranges after.json") == 0
    trained = luciole.load(folder / "q.tflite")
    before, after = (
        luciole.quantize("net.tflite", scheme="int8", rounding="nearest", ranges_from=file).model
        for file in ("before.json", "after.json")
    )
    assert steps(before) != steps(trained)
    assert steps(after) == steps(trained)


def steps(model: Model) -> list[tuple[float, int]]:
    """Scales and zero points of what is computed, as the file has them."""
    found = [stored_parameters(v) for v in model.graph.values if v.producer and v.quantization]
    return [(float(scale[0]), int(point[0])) for scale, point in found]


@pytest.mark.parametrize("scheme", ["int8", "w2a4"])
@pytest.mark.parametrize("asked", ["7", "26", "other.npz"])
def test_tune_data_names_the_first_records_that_do_not_judge_or_a_file(
    folder: Path, scheme: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorflow")
    logits(folder)
    x, seen = random(3, 30, 20), []
    np.savez(folder / "other.npz", x=random(4, 11, 20))

    def watching(student: object, teacher: object, data: Mapping[str, Array], **_: object) -> None:
        seen.append(data["x"])
        raise QuantizeError("that is enough")

    monkeypatch.setattr(luciole.api, "finetune", watching)
    words = f"net.tflite -o q.circle --data data.npz:x_train --scheme {scheme}"
    assert run(f"{words} --tune 1 --tune_data {asked}") == 1
    wanted = np.delete(x, [9, 19, 29], 0)  # a tenth judges
    wanted = random(4, 11, 20) if asked == "other.npz" else wanted[: int(asked)]
    np.testing.assert_array_equal(seen[0], wanted)


def logits(folder: Path) -> None:
    """Let the network's answer be a class, and write class numbers beside the records."""
    model = network()
    answer = model.graph.append(Softmax(model.graph.outputs[0], beta=1.0), "answer")
    model.graph.outputs, model.signatures = [answer.output], []
    luciole.save(model, folder / "net.tflite")
    labels = np.arange(30, dtype=np.int64) % 4
    np.savez(folder / "data.npz", x_train=random(3, 30, 20), y_train=labels)


def test_seconds_are_those_of_training_too(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([100.0, 200.0, 268.0])
    trained: list[float] = []
    monkeypatch.setattr(program, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(program, "train", lambda *given: trained.append(next(seconds)))
    assert run(f"{STATIC} --tune 1 --report r.json --no-proof") == 0
    assert trained == [200.0], "between both"
    assert "in 168.0 s" in capsys.readouterr().out
    assert json.loads((folder / "r.json").read_text())["seconds"] == 168


def test_quantize_refuses_labels_that_are_no_classes_before_anything_is_learned(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(luciole.api, "quantize", lambda *given, **more: 1 / 0)
    np.savez(folder / "data.npz", x_train=random(3, 30, 20), y_train=np.arange(30))
    assert run(f"{STATIC} --qat 1 --labels y_train") == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("luciole: error: record 4 has label 4, output 'b' has 4 classes: 0 to 3")


def test_a_scheme_of_few_bits_is_trained_on_the_way(folder: Path) -> None:
    pytest.importorskip("tensorflow")
    logits(folder)
    words = "net.tflite -o q.circle --data data.npz:x_train --scheme w1a2 --tune 1 --report r.json"
    assert run(f"{words} --no-proof") == 0
    model = luciole.load(folder / "q.circle")
    assert [op.kind for op in model.graph.ops].count("LQ_FULLY_CONNECTED") == 2
    assert len(json.loads((folder / "r.json").read_text())["finetuning"]) == 2


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ("--simulate", {"QUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED", "TANH"}),
        ("--requantize uint8", {"QUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED", "TANH"}),
    ],
)
def test_integers_become_others(
    folder: Path, words: str, kinds: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"{STATIC} --no-proof") == 0
    assert run(f"q.tflite -o r.tflite --no-proof {words}") == 0
    made = luciole.load(folder / "r.tflite").graph
    assert {op.kind for op in made.ops} == kinds
    (layer, *_) = [op for op in made.ops if op.kind == "FULLY_CONNECTED"]
    wanted = TensorType.FLOAT32 if words == "--simulate" else TensorType.UINT8
    assert layer.output.dtype == wanted
    assert "r.tflite:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("net.tflite -o r.tflite --simulate", 1, "nothing to simulate"),
        ("net.tflite -o r.tflite --requantize uint8", 1, "nothing to requantize"),
        ("net.tflite -o r.tflite --requantize int4", 1, "uint8, int8 are possible"),
        ("net.tflite -o r.tflite --simulate --data data.npz", 2, "leave --data out"),
        ("net.tflite -o r.tflite --scheme from_fake_quant", 1, "no FAKE_QUANT operator says"),
        ("net.tflite -o r.tflite --scheme uint8", 2, "--scheme uint8 learns from data"),
    ],
)
def test_changes_that_cannot_be_are_refused(
    folder: Path, words: str, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == code
    assert sentence in capsys.readouterr().err
    assert not (folder / "r.tflite").exists()


def test_one_thing_is_done_at_a_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("net.tflite -o r.tflite --simulate --scheme int8")
    assert ended.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err
