"""SKIP_GRAM."""

from luciole.ir.fields import attr, operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class SkipGram(Op, code=BuiltinOperator.SKIP_GRAM, options="SkipGramOptions"):
    """Sequences of ``ngram_size`` words of the first text, joined by spaces.

    At most ``max_skip_size`` words are left out between neighbours. With ``include_all_ngrams``
    shorter sequences are given, too, each behind those that begin with it.
    """

    input: Value = operand()

    ngram_size: int = attr(default=0)
    max_skip_size: int = attr(default=0)
    include_all_ngrams: bool = attr(default=False)

    def infer_dtype(self, /) -> TensorType:
        return TensorType.STRING

    def infer_shape(self, /) -> Shape:
        return (None,)
