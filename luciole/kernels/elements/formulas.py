"""Formulas of operators: what they are kept under."""

from luciole.ir import Op


def name_of(cls: type[Op]) -> str:
    """Name the formula of an operator. Raises TypeError for one with attributes, of which a formula
    would know nothing.
    """
    attributes = ", ".join(field.name for field in cls.attr_fields())
    if attributes:
        raise TypeError(f"{cls.__name__} has {attributes}: a formula knows nothing of attributes")
    return cls.__name__
