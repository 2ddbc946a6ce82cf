"""Hash tables that are filled once: HASHTABLE and its _FIND, _IMPORT and _SIZE."""

from collections.abc import Iterator

from luciole.ir.fields import attr, dtype_of, like, operand
from luciole.ir.op import Op
from luciole.ir.ops.variables import RESOURCE
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType

ENTRIES = (TensorType.INT64, TensorType.STRING)
"""Element types of keys and values: one of them for keys, the other for values."""


class Hashtable(Op, code=BuiltinOperator.HASHTABLE, options="HashtableOptions"):
    """The table of the given number, from INT64 to STRING or the reverse; empty at first."""

    stateful = True

    table_id: int = attr(default=0)
    key_dtype: TensorType = attr(default=TensorType.FLOAT32)
    value_dtype: TensorType = attr(default=TensorType.FLOAT32)

    def infer_shape(self, /) -> Shape:
        return self.results[0].shape if self.results else (1,)

    def infer_dtype(self, /) -> TensorType:
        return TensorType.RESOURCE

    def verify(self, /) -> Iterator[str]:
        if sorted((self.key_dtype, self.value_dtype)) != sorted(ENTRIES):
            yield (
                f"it is from {self.key_dtype.name} to {self.value_dtype.name}, "
                "INT64 to STRING or STRING to INT64 is needed"
            )


class HashtableFind(Op, code=BuiltinOperator.HASHTABLE_FIND, options="HashtableFindOptions"):
    """The value of each key, the first default value where there is none."""

    stateful = True

    table: Value = operand(dtype=RESOURCE)
    keys: Value = operand(dtype=ENTRIES)
    default_value: Value = operand(dtype=ENTRIES)

    infer_shape = like("keys")
    infer_dtype = dtype_of("default_value")


class HashtableImport(Op, code=BuiltinOperator.HASHTABLE_IMPORT, options="HashtableImportOptions"):
    """Fill a table with pairs of keys and values; one that was filled before stays as it is.

    Of values for the same key the first counts.
    """

    variadic_results = True
    stateful = True
    result_names = ()

    table: Value = operand(dtype=RESOURCE)
    keys: Value = operand(dtype=ENTRIES)
    values: Value = operand(dtype=ENTRIES)

    def infer_shape(self, /) -> tuple[Shape, ...]:
        return ()

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return ()


class HashtableSize(Op, code=BuiltinOperator.HASHTABLE_SIZE, options="HashtableSizeOptions"):
    """How many keys a table has, INT64."""

    stateful = True

    table: Value = operand(dtype=RESOURCE)

    def infer_shape(self, /) -> Shape:
        return (1,)

    def infer_dtype(self, /) -> TensorType:
        return TensorType.INT64
