"""What layers are called in short, against names that TensorFlow's converters really wrote."""

from __future__ import annotations

import pytest

from luciole.ir.names import fragments, is_like, layer_first, meant, short_names

KERAS = [
    "functional_1/activation/Relu;functional_1/conv2d/BiasAdd;functional_1/conv2d/convolution",
    "functional_1/activation_1/Relu;functional_1/conv2d_1/BiasAdd;functional_1/conv2d/convolution",
    "functional_1/add/add",
    "functional_1/dense/MatMul;functional_1/dense/BiasAdd",
    "StatefulPartitionedCall_1:0",
]


def test_short_names_are_the_layers_own_scopes() -> None:
    short = short_names(KERAS)
    wanted = ["activation", "conv2d_1", "add", "dense", "StatefulPartitionedCall_1:0"]
    assert [short[name] for name in KERAS] == wanted, "conv2d stands in two names"


def test_short_names_tell_names_apart() -> None:
    names = [*KERAS, "a/b", "a/c", "d/b", "a/b/c", "a//b", "plain", "plain"]
    short = short_names(names)
    assert len(set(short.values())) == len(set(names))
    for name in names:
        assert meant(short[name], names) == [name] * names.count(name) or short[name] == name


def test_a_name_alone_is_shortened_to_its_layer() -> None:
    assert short_names(["model/seq/output/MatMul;x"]) == {"model/seq/output/MatMul;x": "output"}
    assert short_names(["model/thing"]) == {"model/thing": "model/thing"}
    assert short_names([]) == {}


def test_a_layer_is_in_front_of_what_was_fused_with_it() -> None:
    names = ["relu/Relu;stem/convolution", "relu_1/Relu;second/BiasAdd", "relu_2/Relu;norm/add"]
    assert list(short_names(names).values()) == ["stem", "second", "relu_2"]
    assert layer_first(names[0]) == "stem/convolution;relu/Relu"
    assert layer_first(names[2]) == names[2]


def test_texts_mean_the_name_itself_first() -> None:
    names = ["fc", "net/fc", "net/fc_1/MatMul"]
    assert meant("fc", names) == ["fc"]
    assert meant("net", names) == ["net/fc", "net/fc_1/MatMul"]
    assert meant("fc_1/MatMul", names) == ["net/fc_1/MatMul"]
    assert meant("f", names) == []


@pytest.mark.parametrize(
    ("pattern", "fits"), [("dense*", True), ("*dense", True), ("dense_?", False), ("n/dense", True)]
)
def test_patterns_are_for_parts_of_names(pattern: str, fits: bool) -> None:
    assert is_like("n/dense/MatMul", pattern) is fits


def test_names_of_very_many_parts_are_looked_at_in_bounded_time() -> None:
    assert sum(1 for _ in fragments("a/" * 100_000)) < 5000
