"""What is written: text that a person reads and that nothing in a model's names can break."""

from __future__ import annotations

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.compiler import Compiled, CompileOptions, Program, compile_model
from luciole.compiler import text as text_
from luciole.compiler.headers import needed, pieces, struct_fields
from luciole.compiler.options import OptionError
from luciole.compiler.self_test import random_records, self_test
from luciole.compiler.text import Names, comment, number, table
from luciole.ir import Graph, GraphError, LucioleError, Model, TensorType, UnsupportedError
from luciole.ir.graph import Signature
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.elementwise_unary import Log
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.schema.enums import Padding
from luciole.tools.random_models import lq_dense
from tests.compiler_support import (
    COMPILERS,
    STRICT,
    built,
    needs_compiler,
    program_of,
    run_sound,
)
from tests.support import one_op


def test_a_person_finds_each_layer_its_shape_and_its_bytes() -> None:
    source = program_of(lq_dense((40, 30, 10), 2)).source
    assert "LQ_FULLY_CONNECTED uint8 [1,40] -> uint8 [1,30]" in source
    assert "2 bit inputs, 2 bit weights; results times 2^" in source
    assert "/* [1,30] */" in source
    assert source.count("static const struct luc_lq_fully_connected ") == 2


def test_only_kernels_that_are_used_are_written() -> None:
    source = program_of(lq_dense((40, 10), 2)).source
    assert "luc_softmax" not in source
    assert "luc_levels_of_fixed" not in source
    assert source.index("luc_count(") < source.index("luc_lq_record(")


def test_each_function_has_its_struct_and_all_that_it_calls() -> None:
    functions = [name for name in pieces() if f"struct {name}" in pieces()]
    assert "luc_lq_fully_connected" in functions
    for function in functions:
        fields = struct_fields(function)
        assert fields, function
        assert len({f.name for f in fields}) == len(fields)
        declared = re.findall(r"^    .*;", pieces()[f"struct {function}"].text, re.M)
        assert len(fields) == len(declared), function
        assert needed([function])[-1] is pieces()[function]


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(LucioleError, match="there is no C function luc_nothing"):
        needed(["luc_nothing"])


@pytest.mark.parametrize("text", ["a */ int x; /*", "??/\n", "\\\n", "caf\u00e9 \u202e", "// x"])
def test_names_cannot_end_a_comment(text: str) -> None:
    assert not set(comment(text)) & set("*?\\\n\u202e")


def test_names_are_identifiers_that_are_given_once() -> None:
    names = Names("t_run")
    texts = ("int", "a/b;C d", "c d", "9", "", "luc_x", "T_run", "\u00fc", "t_int")
    found = [names.of(text) for text in texts]
    assert len(set(found)) == len(found)
    assert all(name.isidentifier() and name.isascii() for name in found)
    assert all(name.startswith("t_") for name in found)
    assert "t_run" not in found


WORDS = [
    *("int", "float", "for", "while", "register", "restrict", "inline", "main", "memcpy", "memset"),
    *("arena", "AT", "has_begun", "NULL", "int8_t", "uint32_t", "size_t", "linux", "unix", "i386"),
    *("typeof", "asm", "true", "false", "bool", "and", "or", "not", "xor", "bitand", "compl"),
    *("class", "new", "delete", "this", "template", "namespace", "operator", "virtual", "nullptr"),
    *("constexpr", "static_assert", "alignas", "alignof", "thread_local", "wchar_t", "export"),
    *("friend", "mutable", "explicit", "typename", "requires", "concept", "co_await", "luc_relu"),
    *("run", "reset", "t", "t_run", "x", "x_", "_x", "__x", "INT8_C", "EOF", "errno", "signal"),
    *("abs", "y0", "index", "inputs", "outputs"),
]


def worded(count: int, name: str = "net") -> Program:
    """A program whose first inputs, whose tensors and whose outputs are called by such words."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    for word in WORDS[:count]:
        graph.add_input(word, (1, 2))
    value = graph.inputs[0]
    for word in WORDS[count:]:
        graph.append(Tanh(value), word)
        value = graph.ops[-1].results[0]
    graph.outputs = [op.results[0] for op in graph.ops[-count:]]
    return compile_model(model, CompileOptions(name))


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", ["c99", "gnu99", "gnu17"])
@pytest.mark.parametrize(("count", "name"), [(2, "net"), (len(WORDS) - 4, "t")])
def test_no_name_is_a_word_of_c(
    compiler: str, standard: str, count: int, name: str, tmp_path: Path
) -> None:
    program = worded(count, name)
    for file, text in program.files.items():
        (tmp_path / file).write_text(text)
    words = [compiler, *STRICT[1:], f"-std={standard}", "-c", f"{name}.c", "-o", "net.o"]
    subprocess.run(words, check=True, cwd=tmp_path)


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler")
@pytest.mark.parametrize("standard", ["c++11", "gnu++17", "c++20"])
def test_no_name_is_a_word_of_cpp(standard: str, tmp_path: Path) -> None:
    for file, text in worded(len(WORDS) - 4).files.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "main.cpp").write_text('#include "net.h"\nint main() { return 0; }\n')
    subprocess.run(
        ["g++", "-Wall", "-Werror", f"-std={standard}", "-fsyntax-only", "main.cpp"],
        check=True,
        cwd=tmp_path,
    )


@needs_compiler
def test_a_source_beside_the_header_of_another_network_refuses_to_compile(tmp_path: Path) -> None:
    one, other = (program_of(lq_dense((9, size, 4), 1)) for size in (5, 6))
    (tmp_path / "net.c").write_text(one.source)
    for header, code in ((other.header, 1), (one.header, 0)):
        (tmp_path / "net.h").write_text(header)
        words = ["cc", "-std=c99", "-fsyntax-only", "net.c"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert ("net.h and net.c are not of the same network" in done.stderr) is bool(code)


@needs_compiler
def test_hostile_names_compile(tmp_path: Path) -> None:
    model = lq_dense((9, 4), 1)
    x, y = model.graph.inputs[0], model.graph.outputs[0]
    x.name, y.name = '*/ #include "/etc/passwd"\n\\', '??/"%s\\n'
    (found,) = built(program_of(model), tmp_path).run({x.name: np.zeros((1, 9), np.float32)})
    assert found.shape == (1, 4)


@pytest.mark.parametrize("x", [0.1, 1 / 3, 1e-45, 3.4e38, -0.0, 2.0, 1e10, 16777217.0])
def test_floats_are_exact(x: float) -> None:
    text = number(x, "float").removesuffix("f")
    read = float.fromhex(text) if "0x" in text else float(text)
    assert np.float32(read).tobytes() == np.float32(x).tobytes()


@pytest.mark.parametrize("count", [0, 1, 5, 7, 20, 63, 64])
def test_tables_are_the_same_however_many_numbers_are_written_at_a_time(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.random.default_rng(count).standard_normal(count).astype(np.float32)
    whole = table("a", "float", array)
    assert whole[0].count(",") == max(count, 1)
    monkeypatch.setattr(text_, "_AT_A_TIME", 7)
    assert table("a", "float", array) == whole


def test_tables_hold_what_their_types_do() -> None:
    text, size = table("a", "int32_t", np.array([-(2**31), 5]))
    assert "(-2147483647 - 1), " in text
    assert size == 8
    with pytest.raises(UnsupportedError, match="beyond uint8_t"):
        table("a", "uint8_t", np.array([256]))
    text, _ = table("a", "float", np.array([np.nan, -np.inf, 1.5]))
    assert [cell.strip() for cell in text.splitlines()[1].split(",")] == [
        *("NAN", "-INFINITY", "1.5f", ""),
    ]


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(b"no library")
    with pytest.raises(LucioleError, match="is no compiled network"):
        Compiled(tmp_path / "a.so")


@needs_compiler
def test_other_arrays_than_were_compiled_are_refused(tmp_path: Path) -> None:
    compiled = built(program_of(lq_dense((9, 4), 1)), tmp_path)
    with pytest.raises(LucioleError, match=r"is float32 \[1, 9\], float64 \[1, 9\] was given"):
        compiled.run({"x": np.zeros((1, 9))})
    with pytest.raises(LucioleError, match="inputs are 'x'; 'y' were given"):
        compiled.run({"y": np.zeros((1, 9), np.float32)})


@needs_compiler
def test_a_library_whose_end_is_missing_is_refused(tmp_path: Path) -> None:
    built(program_of(lq_dense((9, 4), 1)), tmp_path)
    library = (tmp_path / "net.so").read_bytes()
    (tmp_path / "cut.so").write_bytes(library[: len(library) // 2])
    with pytest.raises(LucioleError, match=r"is no compiled network: it has \d+ bytes of \d+"):
        Compiled(tmp_path / "cut.so")


@needs_compiler
def test_threads_may_call_a_library(tmp_path: Path) -> None:
    compiled = built(program_of(lq_dense((64, 320, 10), 2)), tmp_path)
    rng = np.random.default_rng(0)
    given = [{"x": rng.normal(size=(1, 64)).astype(np.float32)} for _ in range(4)]
    wanted = [compiled.run(x)[0].tobytes() for x in given]

    def found(k: int) -> set[bytes]:
        return {compiled.run(given[k])[0].tobytes() for _ in range(3000)}

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(found, range(4))) == [{one} for one in wanted]


def test_a_program_refuses_open_extents_that_a_pool_does_not_take() -> None:
    window: dict[str, Any] = {"filter_height": 2, "filter_width": 2, "padding": Padding.VALID}
    model = one_op(MaxPool2D, [np.ones((1, 4, 4, 1), np.float32)], stride_h=2, stride_w=2, **window)
    model.graph.inputs[0].shape = (1, None, None, 1)
    with pytest.raises(GraphError, match=r"open extents of 'x0' count as 1 in C: .* --shape"):
        program_of(model)


def test_a_program_refuses_tensors_that_c_has_no_type_for() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    words = graph.add_input("words", (2,))
    words.dtype = TensorType.STRING
    graph.outputs = [words]
    with pytest.raises(UnsupportedError, match="tensor 'words' is STRING: it has no C form"):
        program_of(model)


@pytest.mark.parametrize("name", ["string", "a b", "caf\u00e9", "*/", "9", ""])
def test_names_that_c_does_not_take_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match=r"C has a header of that name|make a name"):
        CompileOptions(name)


def test_arguments_are_called_what_a_signature_does() -> None:
    model = lq_dense((9, 4), 1)
    x, y = model.graph.inputs[0], model.graph.outputs[0]
    model.signatures.append(Signature("s", model.graph, [("image", x)], [("digit", y)]))
    assert "int net_run(const float t_image[9], float t_digit[4]);" in program_of(model).header
    wanted = "int net_run(const float t_image[9], int32_t t_digit_class["
    assert wanted in program_of(model, output="class").header


def test_long_names_begin_with_a_whole_word() -> None:
    text = "sequential_1/dense_hidden_layer_1/MatMul"
    assert Names().of(text) == "t_dense_hidden_layer_1_matmul"
    assert Names().of("x" * 50) == "t_" + "x" * 32


@needs_compiler
def test_a_network_without_inputs_has_a_self_test(tmp_path: Path) -> None:
    graph = Graph("main")
    model = Model()
    model.add_graph(graph)
    graph.outputs = [graph.add_constant("c", np.arange(3, dtype=np.float32))]
    program = program_of(model)
    test = self_test(program, built(program, tmp_path), random_records(program))
    assert run_sound(program, tmp_path, test) == 0


@needs_compiler
def test_a_self_test_expects_infinities_and_nan(tmp_path: Path) -> None:
    x = np.array([[-1.0, 0.0, 1.0, 4.0]], np.float32)
    program = program_of(one_op(Log, [x]))
    text = self_test(program, built(program, tmp_path), {"x0": x})
    for expected in ("NAN", "-INFINITY"):
        assert expected in text
        assert run_sound(program, tmp_path, text.replace(expected, "1.0f")) == 1
    assert run_sound(program, tmp_path, text) == 0
