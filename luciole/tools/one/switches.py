"""The switches of circle2circle and one-optimize, which are names of passes here."""

from __future__ import annotations

from luciole.tools.one.alias import HOLDS, Option, option, switch

_SAME = """
common_subexpression_elimination convert_nchw_to_nhwc decompose_hardswish decompose_softmax
fold_cast fold_densify fold_dequantize fold_dwconv fold_fully_connected fold_gather fold_mul
fold_reshape fold_shape fold_sparse_to_dense fold_squeeze forward_reshape_to_unaryop
forward_transpose_op fuse_activation_function fuse_add_to_fullyconnected_bias fuse_add_with_conv
fuse_add_with_fully_connected fuse_add_with_tconv fuse_batchnorm_with_conv
fuse_batchnorm_with_dwconv fuse_batchnorm_with_tconv fuse_gelu fuse_horizontal_fc_layers
fuse_instnorm fuse_mean_with_mean fuse_mul_to_fullyconnected_weights fuse_mul_with_conv
fuse_mul_with_div fuse_mul_with_fullyconnected fuse_mul_with_rmsnorm fuse_preactivation_batchnorm
fuse_prelu fuse_rmsnorm fuse_rope fuse_rsqrt fuse_slice_with_tconv fuse_transpose_with_mean
nchw_to_nhwc_input_shape nchw_to_nhwc_output_shape remove_duplicate_const remove_fakequant
remove_gather_guard remove_quantdequant remove_redundant_quantize remove_redundant_reshape
remove_redundant_transpose remove_unnecessary_add remove_unnecessary_cast remove_unnecessary_div
remove_unnecessary_mul remove_unnecessary_reshape remove_unnecessary_slice
remove_unnecessary_split remove_unnecessary_strided_slice remove_unnecessary_transpose
replace_cw_mul_add_with_depthwise_conv replace_non_const_fc_with_batch_matmul replace_sub_with_add
replace_with_fc_gelu_fc resolve_customop_add resolve_customop_batchmatmul resolve_customop_matmul
resolve_customop_max_pool_with_argmax resolve_customop_splitv resolve_former_customop
substitute_expand_dims_to_reshape
substitute_pack_to_reshape substitute_padv2_to_pad substitute_splitv_to_split
substitute_squeeze_to_reshape substitute_strided_slice_to_reshape substitute_transpose_to_reshape
transform_min_max_to_relu6 transform_min_relu_to_relu6 transform_sqrt_div_to_rsqrt_mul
unroll_unidirseqlstm
"""
SAME = tuple(_SAME.split())
"""Switches that are the name of a pass."""

_SPARSE = "no tensor becomes sparse"

OTHERS: tuple[Option, ...] = (
    switch("--fold_add_v2", "--passes resolve_customop_add,fold_constants"),
    switch("--dynamic_batch_to_single_batch", "--batch 1"),
    switch("--disable_validation", "--no-proof"),
    switch("--mute_warnings", HOLDS, "passes warn of nothing"),
    switch("--exp_disable_sep_transposeconv_actfunc", HOLDS, "activations are never taken out"),
    switch("--expand_broadcast_const", None, "constants stay as small as they are"),
    switch("--fuse_bcq", None, "BCQ operators are read and run, not put together"),
    switch("--make_batchnorm_gamma_positive", None, "it changes what a model computes"),
    switch("--remove_qdq_for_mpo", None, "it changes what a model computes"),
    switch("--shuffle_weight_to_16x1float32", None, "weights stay in their order"),
    switch("--compress_weights_huffman", None, "weights stay as they are"),
    option("--change_outputs", "NAMES", None, "`luciole cut --output NAME` chooses outputs"),
    option("--sparsify_tensor", "NAME", None, _SPARSE),
    option("--sparsify_traversal_order", "ORDER", None, _SPARSE),
    option("--sparsify_format", "FORMAT", None, _SPARSE),
    option("--sparsify_block_size", "SIZE", None, _SPARSE),
    option("--sparsify_block_map", "MAP", None, _SPARSE),
)
"""Switches that are something else, or nothing."""

SWITCHES = (*(switch(f"--{name}", f"--passes {name}") for name in SAME), *OTHERS)
"""All of them."""
