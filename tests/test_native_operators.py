"""Which operators run compiled: the checked-in list against what the registry knows.

After a change that adds a compiled kernel:

    python3 -m tests.test_native_operators > tests/native_operators.txt
"""

from __future__ import annotations

from pathlib import Path

from luciole.kernels import registry

LIST = Path(__file__).with_name("native_operators.txt")


def lines() -> list[str]:
    """For every operator the element types with a compiled kernel, and those without one."""
    kinds: dict[str, dict[str, set[str]]] = {}
    for kind, cls, signature in registry.registered():
        name = cls.code.name if cls.code is not None else cls.__name__
        types = "x".join(t.name for t in signature) or "none"
        kinds.setdefault(name, {"native": set(), "reference": set()})[kind].add(types)
    return [_line(name, **types) for name, types in sorted(kinds.items())]


def _line(name: str, native: set[str], reference: set[str]) -> str:
    return f"{name}: compiled {_types(native)}; NumPy only {_types(reference - native)}"


def _types(names: set[str]) -> str:
    if names == {t.name for t in registry.ANY}:
        return "any"
    return ", ".join(sorted(names)) or "-"


def test_the_list_of_compiled_operators_is_that_of_the_registry() -> None:
    """A line that is missing or new here: see the head of this file."""
    assert LIST.read_text().splitlines() == lines()


def test_most_float_operators_are_compiled() -> None:
    compiled = [line for line in lines() if "compiled -" not in line]
    assert len(compiled) > len(lines()) / 2


if __name__ == "__main__":
    print("\n".join(lines()))
