"""Derive enums.py and tables.py from circle.fbs: ``python -m luciole.schema.derive``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
HEADER = (
    '"""{doc} Derived from circle.fbs by ``python -m luciole.schema.derive``: do not edit."""\n'
)
NUMPY = {
    "bool": "bool_", "byte": "int8", "ubyte": "uint8", "short": "int16", "ushort": "uint16",
    "int": "int32",
    "uint": "uint32", "long": "int64", "ulong": "uint64", "float": "float32", "double": "float64",
}  # fmt: skip


_SPECIFIERS = "UNIONS, Table, scalar, string, table, tables, union, vector"


@dataclass
class Declaration:
    """One enum, union or table of the schema, its members in order."""

    kind: str
    name: str
    base: str
    members: list[str]


def parse(text: str) -> list[Declaration]:
    """Read the declarations of a flatbuffers schema, comments dropped."""
    text = re.sub(r"//.*", "", text)
    matches = re.finditer(r"\b(enum|union|table)\s+(\w+)\s*(?::\s*(\w+))?\s*\{([^}]*)\}", text)
    return [Declaration(m[1], m[2], m[3] or "", _members(m[1], m[4])) for m in matches]


def _members(kind: str, body: str) -> list[str]:
    separator = ";" if kind == "table" else ","
    return [" ".join(member.split()) for member in body.split(separator) if member.strip()]


def enums(declared: list[Declaration]) -> str:
    """Write the text of ``enums.py``: one IntEnum per enum, and one per union for its tags."""
    lines = [HEADER.format(doc="Enumerations of the circle format."), "from enum import IntEnum\n"]
    for d in declared:
        if d.kind == "table":
            continue
        lines.append(f'\nclass {d.name}(IntEnum):\n    """{_words(d)}"""\n')
        lines += ["    NONE = 0"] if d.kind == "union" else []
        lines += [f"    {member}" for member in d.members] + [""]
    return "\n".join(lines)


def _words(d: Declaration) -> str:
    return f"Tags of the union {d.name}." if d.kind == "union" else f"{d.name}, kept as {d.base}."


def tables(declared: list[Declaration]) -> str:
    """Write the text of ``tables.py``: one record class per table."""
    kinds = {d.name: d for d in declared}
    names = sorted(d.name for d in declared if d.kind == "enum" and _used(d.name, declared))
    lines = [
        HEADER.format(doc="Tables of the circle format."),
        "from __future__ import annotations\n",
        "import numpy as np",
        "from numpy.typing import NDArray\n",
        "from luciole.schema import enums",
        "from luciole.schema.enums import (",
        *(f"    {name}," for name in names),
        ")",
        f"from luciole.schema.table import {_SPECIFIERS}\n",
    ]
    for d in declared:
        if d.kind == "table":
            lines.append(f'\nclass {d.name}(Table):\n    """Table {d.name}."""\n')
            lines += [f"    {line}" for line in _fields(d, kinds)] + [""]
    unions = [d.name for d in declared if d.kind == "union"]
    lines.append("\nUNIONS.update(")
    lines += [f"    {name}=enums.{name}," for name in unions] + [")", ""]
    return "\n".join(lines)


def _used(name: str, declared: list[Declaration]) -> bool:
    return any(
        re.search(rf"\b{name}\b(?!.*deprecated)", m)
        for d in declared
        if d.kind == "table"
        for m in d.members
    )


def _fields(d: Declaration, kinds: dict[str, Declaration]) -> Iterator[str]:
    slot = 0
    for member in d.members:
        m = re.fullmatch(r"(\w+) ?: ?(\[?)(\w+)\]?(?: ?= ?([\w.+-]+))?(?: ?\((.*)\))?", member)
        if m is None:
            raise SystemExit(f"circle.fbs: table {d.name}: cannot read {member!r}")
        name, is_list, of, default, note = m.groups()
        slot += of in kinds and kinds[of].kind == "union"
        if "deprecated" not in (note or ""):
            yield _field(name, slot, bool(is_list), of, default, note or "", kinds)
        slot += 1


def _field(
    name: str,
    slot: int,
    is_list: bool,
    of: str,
    default: str | None,
    note: str,
    kinds: dict[str, Declaration],
) -> str:
    kind = kinds[of].kind if of in kinds else "scalar"
    if of == "string":
        return f"{name}: str | None = string({slot}, default=None)"
    if kind == "table":
        return (
            f'{name}: list[{of}] | None = tables({slot}, "{of}", default=None)'
            if is_list
            else f'{name}: {of} | None = table({slot}, "{of}", default=None)'
        )
    if kind == "union":
        return f'{name}: Table | None = union({slot}, "{of}", default=None)'
    base = kinds[of].base if kind == "enum" else of
    enum = f", enum={of}" if kind == "enum" else ""
    if is_list:
        align = re.search(r"force_align: ?(\d+)", note)
        aligned = f", align={align[1]}" if align else ""
        arguments = f'{slot}, "{base}", default=None{enum}{aligned}'
        return f"{name}: NDArray[np.{NUMPY[base]}] | None = vector({arguments})"
    python = of if enum else {"bool": "bool", "float": "float", "double": "float"}.get(of, "int")
    value = _default(python, of, default, kinds)
    return f'{name}: {python} = scalar({slot}, "{base}", default={value}{enum})'


def _default(python: str, of: str, default: str | None, kinds: dict[str, Declaration]) -> str:
    if of in kinds:
        zero = next(m.split(" = ")[0] for m in kinds[of].members if m.endswith("= 0"))
        return f"{of}.{default or zero}"
    if python == "bool":
        return str(default == "true")
    return str(float(default or 0)) if python == "float" else default or "0"


def derived() -> dict[str, str]:
    """Map file names to texts, of everything derived from the schema."""
    declared = parse((HERE / "circle.fbs").read_text())
    return {"enums.py": enums(declared), "tables.py": tables(declared)}


def main() -> int:
    """Write the derived files."""
    for name, text in derived().items():
        (HERE / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
