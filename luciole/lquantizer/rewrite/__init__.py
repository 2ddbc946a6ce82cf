"""Turn learned parameters into operators of a model."""
