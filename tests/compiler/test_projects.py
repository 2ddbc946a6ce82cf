"""Projects around a network: they build as they stand, and say whether results are right."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import luciole
from luciole.compiler import CompileOptions, Program, compile_model
from luciole.compiler.projects.layouts import NEXT, TEMPLATES, memory_of, project_files
from luciole.compiler.self_test import random_records, self_test
from luciole.tools.random_models import convolutions, dense, in_int8, lq_dense
from tests.compiler_support import QUICK, built, needs_compiler
from tests.support import data_path
from tests.tools.running import call

pytestmark = needs_compiler

SECONDS = 60


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, str]:
    """A small network and its self test."""
    options = CompileOptions("small")
    program = compile_model(in_int8(convolutions(6, 3)), options)
    compiled = built(program, tmp_path_factory.mktemp("library"))
    test = self_test(program, compiled, random_records(program), entry="small_test")
    return program, test


def made(kind: str, network: tuple[Program, str], folder: Path) -> Path:
    for name, text in project_files(kind, *network).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=False, timeout=SECONDS
    )


def needs(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


def test_make_builds_and_tells_right_from_wrong(
    network: tuple[Program, str], tmp_path: Path
) -> None:
    needs("make")
    folder = made("makefile", network, tmp_path)
    done = run("make", "-C", folder, "test", "CFLAGS=-O1 -Werror")
    assert (done.returncode, "small: PASS" in done.stdout) == (0, True), done.stderr
    test = folder / "small_test.c"
    assert "were\n * not compared: --check" in test.read_text()
    assert "of the\n * computer that wrote it" in (folder / "main.c").read_text()
    wanted = re.search(r"wanted_0\[\d+\] = \{\n\s+(-?\d+),", test.read_text())
    assert wanted is not None
    number = int(wanted[1])
    other = wanted[0].replace(f"{number},", f"{number ^ 1},")
    test.write_text(test.read_text().replace(wanted[0], other))
    done = run("make", "-C", folder, "test", "CFLAGS=-O1")
    assert done.returncode != 0
    assert "small: FAIL, 1 numbers differ" in done.stdout


def test_make_takes_another_machines_compiler_and_flags(
    network: tuple[Program, str], tmp_path: Path
) -> None:
    """Flags that the linker has to know, too, and what runs the program."""
    needs("make", "arm-none-eabi-gcc", "qemu-arm")
    folder = made("makefile", network, tmp_path)
    flags = "-O1 -mcpu=cortex-r5 -marm -mfpu=vfpv3-d16 -mfloat-abi=hard"
    words = ("CC=arm-none-eabi-gcc", f"CFLAGS={flags}", "LDFLAGS=-specs=rdimon.specs")
    done = run("make", "-C", folder, "test", *words, "RUN=qemu-arm")
    assert (done.returncode, "small: PASS" in done.stdout) == (0, True), done.stderr
    program = compile_model(lq_dense((8, 4), 2), CompileOptions("dense", target="cortex-m4"))
    text = project_files("makefile", program, "")["Makefile"]
    assert f'make CC=arm-none-eabi-gcc CFLAGS="{program.options.machine.flags}"\n' in text


def test_cmake_builds_and_tests(network: tuple[Program, str], tmp_path: Path) -> None:
    needs("cmake", "ctest")
    folder = made("cmake", network, tmp_path)
    for words in (
        ("cmake", "-S", folder, "-B", folder / "build"),
        ("cmake", "--build", folder / "build"),
        ("ctest", "--test-dir", folder / "build"),
    ):
        done = run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "100% tests passed" in done.stdout


def test_the_microbit_says_on_its_serial_line_that_all_is_right(
    network: tuple[Program, str], tmp_path: Path
) -> None:
    needs("make", "arm-none-eabi-gcc", "qemu-system-arm")
    folder = made("microbit", network, tmp_path)
    done = run("make", "-C", folder)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert (folder / "small.hex").read_text().startswith(":")
    machine = ["qemu-system-arm", "-M", "microbit", "-nographic", "-monitor", "none"]
    machine += ["-serial", "stdio", "-kernel", str(folder / "small.elf")]
    with subprocess.Popen(machine, stdout=subprocess.PIPE, text=True) as board:
        assert board.stdout is not None
        said = board.stdout.readline()
        board.kill()
    assert said.strip() == "small: PASS"


def test_sketches_and_zephyr_have_the_files_that_their_tools_look_for(
    network: tuple[Program, str], tmp_path: Path
) -> None:
    sketch = made("arduino", network, tmp_path / "arduino") / "small"
    assert '#include "src/small.h"' in (sketch / "small.ino").read_text()
    zephyr = made("zephyr", network, tmp_path / "zephyr")
    listed = re.findall(r"src/\w+\.c", (zephyr / "CMakeLists.txt").read_text())
    assert sorted(listed) == sorted(f"src/{p.name}" for p in (zephyr / "src").glob("*.c"))
    for folder in (sketch / "src", zephyr / "src"):
        assert "int main" not in (folder / "small_test.c").read_text()


def test_the_program_writes_a_project_or_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luciole.compiler.host.FLAGS", QUICK)
    luciole.save(lq_dense((16, 12, 4), 2), tmp_path / "net.circle")
    words = ("compile", tmp_path / "net.circle", "-o", tmp_path / "c", "--project", "cmake")
    done = call(capsys, *words, "--name", "main")
    assert done.error(2) == "name 'main': a cmake project has a file main.c of its own"
    done = call(capsys, *words, "--self-test")
    assert done.error(2) == "--project has a self test of its own: leave --self-test out"
    assert not (tmp_path / "c").exists()
    done = call(capsys, *words)
    assert (done.code, f"written to the cmake project {tmp_path / 'c'}" in done.out) == (0, True)
    names = sorted(path.name for path in (tmp_path / "c").iterdir())
    assert names == ["CMakeLists.txt", "main.c", "net.c", "net.h", "net_test.c"]


def test_the_program_warns_of_a_board_that_is_too_small_and_refuses_another_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luciole.compiler.host.FLAGS", QUICK)
    luciole.save(dense((400, 200, 8)), tmp_path / "net.circle")
    words = ("compile", tmp_path / "net.circle", "-o", tmp_path / "c", "--project", "microbit")
    done = call(capsys, *words, "--target", "native")
    text = "--project microbit is for cortex-m0plus, found --target native: leave --target out"
    assert done.error(2) == text
    done = call(capsys, *words)
    assert (done.code, f"next   make -C {tmp_path / 'c'}, then copy" in done.out) == (0, True)
    assert re.search(r"warning: .* takes 3\d\d\.\d KB of FLASH, the microbit has 2", done.err)
    assert "RAM" not in done.err


def test_the_program_warns_of_a_board_whose_memory_has_no_room_for_the_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arena alone would have room."""
    monkeypatch.setattr("luciole.compiler.host.FLAGS", QUICK)
    words = ("compile", data_path("models/kws_int8.tflite"), "-o", tmp_path / "c")
    done = call(capsys, *words, "--project", "microbit")
    if "sizes and stack are not measured" in done.err or "stack" not in done.out:
        pytest.skip("needs a compiler that reports the stack")
    assert re.search(r"warning: the network alone takes 16\.\d KB of RAM", done.err)


def test_boards_have_the_memory_of_their_linker_scripts() -> None:
    assert memory_of("microbit") == {"FLASH": 256 * 1024, "RAM": 16 * 1024}
    assert memory_of("cmake") == {}
    assert NEXT.keys() == TEMPLATES.keys()


def test_templates_are_those_that_layouts_name() -> None:
    folder = Path(luciole.__file__).parent / "compiler" / "projects" / "templates"
    named = {template for layout in TEMPLATES.values() for template in layout.values()}
    assert named == {path.name for path in folder.iterdir()}
