"""State by name that outlives a run: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType

RESOURCE = (TensorType.RESOURCE,)


class VarHandle(Op, code=BuiltinOperator.VAR_HANDLE, options="VarHandleOptions"):
    """The variable of the given container and name."""

    stateful = True

    container: str | None = attr(default=None)
    shared_name: str | None = attr(default=None)

    def infer_shape(self, /) -> Shape:
        return self.results[0].shape if self.results else ()

    def infer_dtype(self, /) -> TensorType:
        return TensorType.RESOURCE


class ReadVariable(Op, code=BuiltinOperator.READ_VARIABLE, options="ReadVariableOptions"):
    """The value assigned last. Shape and element type are those that the file gives the result."""

    stateful = True

    resource: Value = operand(dtype=RESOURCE)

    def infer_shape(self, /) -> Shape:
        if not self.results:
            raise ShapeError("the shape of a variable's contents must be given")
        return self.results[0].shape

    def infer_dtype(self, /) -> TensorType:
        if not self.results:
            raise ShapeError("the element type of a variable's contents must be given")
        return self.results[0].dtype


class AssignVariable(Op, code=BuiltinOperator.ASSIGN_VARIABLE, options="AssignVariableOptions"):
    """Let a variable hold a copy of a tensor."""

    variadic_results = True
    stateful = True
    result_names = ()

    resource: Value = operand(dtype=RESOURCE)
    value: Value = operand()

    def infer_shape(self, /) -> tuple[Shape, ...]:
        return ()

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return ()
