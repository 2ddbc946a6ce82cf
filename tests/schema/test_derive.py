"""What is derived from the schema: not stale, and derived rightly."""

from __future__ import annotations

import pytest

from luciole.schema import derive


@pytest.mark.parametrize("name", ["enums.py", "tables.py"])
def test_derived_files_are_not_stale(name: str) -> None:
    assert (derive.HERE / name).read_text() == derive.derived()[name]


def test_nothing_else_is_derived() -> None:
    assert derive.derived().keys() == {"enums.py", "tables.py"}


def test_slots_skip_deprecated_fields_and_count_unions_twice() -> None:
    text = """
    enum Mode : byte { B = 1, A = 0, }
    union Any { X = 3 }
    table X { }
    table T {
      first:int;            // a comment: [int]
      gone:float (deprecated);
      any:Any;
      mode:Mode = B;
      plain:Mode;
      ratio:float = 1.5;
      flags:[bool];
      bytes:[ubyte] (force_align: 16);
      xs:[X];
      x:X;
      name:string;
      on:bool = true;
      low:long = -1;
    }
    """
    derived = derive.tables(derive.parse(text))
    fields = [
        line.strip() for line in derived.split("class T(Table)")[1].split("UNIONS")[0].split("\n")
    ]
    assert [line for line in fields if " = " in line] == [
        'first: int = scalar(0, "int", default=0)',
        'any: Table | None = union(3, "Any", default=None)',
        'mode: Mode = scalar(4, "byte", default=Mode.B, enum=Mode)',
        'plain: Mode = scalar(5, "byte", default=Mode.A, enum=Mode)',
        'ratio: float = scalar(6, "float", default=1.5)',
        'flags: NDArray[np.bool_] | None = vector(7, "bool", default=None)',
        'bytes: NDArray[np.uint8] | None = vector(8, "ubyte", default=None, align=16)',
        'xs: list[X] | None = tables(9, "X", default=None)',
        'x: X | None = table(10, "X", default=None)',
        "name: str | None = string(11, default=None)",
        'on: bool = scalar(12, "bool", default=True)',
        'low: int = scalar(13, "long", default=-1)',
    ]


def test_enums_keep_their_numbers_and_unions_start_with_none() -> None:
    text = derive.enums(derive.parse("enum E : byte { LOW = -7, NEXT = 5 } union U { T = 2, }"))
    assert "class E(IntEnum):" in text
    assert "    LOW = -7\n    NEXT = 5\n" in text
    assert '    """Tags of the union U."""\n\n    NONE = 0\n    T = 2\n' in text


def test_the_parser_refuses_a_field_it_cannot_read() -> None:
    with pytest.raises(SystemExit, match=r"circle\.fbs: table T: cannot read 'a int'"):
        derive.tables(derive.parse("table T { a int; }"))
