"""Tables of the circle format. Derived from circle.fbs by ``python -m luciole.schema.derive``: do not edit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.schema import enums
from luciole.schema.enums import (
    ActivationFunctionType,
    BuiltinOperator,
    CombinerType,
    CompressionType,
    CustomOptionsFormat,
    DimensionType,
    FullyConnectedOptionsWeightsFormat,
    LSHProjectionType,
    LSTMKernelType,
    MirrorPadMode,
    Padding,
    ReduceWindowFunction,
    RngAlgorithm,
    RoPEMode,
    StablehloComparisonDirection,
    StablehloComparisonType,
    StablehloPrecisionConfig,
    TensorType,
)
from luciole.schema.table import UNIONS, Table, scalar, string, table, tables, union, vector


class Int32Vector(Table):
    """Table Int32Vector."""

    values: NDArray[np.int32] | None = vector(0, "int", default=None)


class Uint16Vector(Table):
    """Table Uint16Vector."""

    values: NDArray[np.uint16] | None = vector(0, "ushort", default=None, align=4)


class Uint8Vector(Table):
    """Table Uint8Vector."""

    values: NDArray[np.uint8] | None = vector(0, "ubyte", default=None, align=4)


class DimensionMetadata(Table):
    """Table DimensionMetadata."""

    format: DimensionType = scalar(0, "byte", default=DimensionType.DENSE, enum=DimensionType)
    dense_size: int = scalar(1, "int", default=0)
    array_segments: Table | None = union(3, "SparseIndexVector", default=None)
    array_indices: Table | None = union(5, "SparseIndexVector", default=None)


class SparsityParameters(Table):
    """Table SparsityParameters."""

    traversal_order: NDArray[np.int32] | None = vector(0, "int", default=None)
    block_map: NDArray[np.int32] | None = vector(1, "int", default=None)
    dim_metadata: list[DimensionMetadata] | None = tables(2, "DimensionMetadata", default=None)


class CustomQuantization(Table):
    """Table CustomQuantization."""

    custom: NDArray[np.uint8] | None = vector(0, "ubyte", default=None, align=16)


class MXQuantization(Table):
    """Table MXQuantization."""

    axis: int = scalar(0, "int", default=0)


class BlockwiseQuantization(Table):
    """Table BlockwiseQuantization."""

    scales: int = scalar(0, "int", default=0)
    zero_points: int = scalar(1, "int", default=0)
    block_size: int = scalar(2, "int", default=0)


class QuantizationParameters(Table):
    """Table QuantizationParameters."""

    min: NDArray[np.float32] | None = vector(0, "float", default=None)
    max: NDArray[np.float32] | None = vector(1, "float", default=None)
    scale: NDArray[np.float32] | None = vector(2, "float", default=None)
    zero_point: NDArray[np.int64] | None = vector(3, "long", default=None)
    details: Table | None = union(5, "QuantizationDetails", default=None)
    quantized_dimension: int = scalar(6, "int", default=0)


class VariantSubType(Table):
    """Table VariantSubType."""

    shape: NDArray[np.int32] | None = vector(0, "int", default=None)
    type: TensorType = scalar(1, "byte", default=TensorType.FLOAT32, enum=TensorType)
    has_rank: bool = scalar(2, "bool", default=False)


class Tensor(Table):
    """Table Tensor."""

    shape: NDArray[np.int32] | None = vector(0, "int", default=None)
    type: TensorType = scalar(1, "byte", default=TensorType.FLOAT32, enum=TensorType)
    buffer: int = scalar(2, "uint", default=0)
    name: str | None = string(3, default=None)
    quantization: QuantizationParameters | None = table(4, "QuantizationParameters", default=None)
    is_variable: bool = scalar(5, "bool", default=False)
    sparsity: SparsityParameters | None = table(6, "SparsityParameters", default=None)
    shape_signature: NDArray[np.int32] | None = vector(7, "int", default=None)
    has_rank: bool = scalar(8, "bool", default=False)
    variant_tensors: list[VariantSubType] | None = tables(9, "VariantSubType", default=None)
    compression_type: CompressionType = scalar(10, "byte", default=CompressionType.NONE, enum=CompressionType)


class Conv2DOptions(Table):
    """Table Conv2DOptions."""

    padding: Padding = scalar(0, "byte", default=Padding.SAME, enum=Padding)
    stride_w: int = scalar(1, "int", default=0)
    stride_h: int = scalar(2, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(3, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    dilation_w_factor: int = scalar(4, "int", default=1)
    dilation_h_factor: int = scalar(5, "int", default=1)
    quantized_bias_type: TensorType = scalar(6, "byte", default=TensorType.FLOAT32, enum=TensorType)


class DepthwiseConv2DOptions(Table):
    """Table DepthwiseConv2DOptions."""

    padding: Padding = scalar(0, "byte", default=Padding.SAME, enum=Padding)
    stride_w: int = scalar(1, "int", default=0)
    stride_h: int = scalar(2, "int", default=0)
    depth_multiplier: int = scalar(3, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(4, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    dilation_w_factor: int = scalar(5, "int", default=1)
    dilation_h_factor: int = scalar(6, "int", default=1)


class ConcatEmbeddingsOptions(Table):
    """Table ConcatEmbeddingsOptions."""

    num_channels: int = scalar(0, "int", default=0)
    num_columns_per_channel: NDArray[np.int32] | None = vector(1, "int", default=None)
    embedding_dim_per_channel: NDArray[np.int32] | None = vector(2, "int", default=None)


class LSHProjectionOptions(Table):
    """Table LSHProjectionOptions."""

    type: LSHProjectionType = scalar(0, "byte", default=LSHProjectionType.UNKNOWN, enum=LSHProjectionType)


class Pool2DOptions(Table):
    """Table Pool2DOptions."""

    padding: Padding = scalar(0, "byte", default=Padding.SAME, enum=Padding)
    stride_w: int = scalar(1, "int", default=0)
    stride_h: int = scalar(2, "int", default=0)
    filter_width: int = scalar(3, "int", default=0)
    filter_height: int = scalar(4, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(5, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)


class SVDFOptions(Table):
    """Table SVDFOptions."""

    rank: int = scalar(0, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(1, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    asymmetric_quantize_inputs: bool = scalar(2, "bool", default=False)


class RNNOptions(Table):
    """Table RNNOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    asymmetric_quantize_inputs: bool = scalar(1, "bool", default=False)


class FullyConnectedOptions(Table):
    """Table FullyConnectedOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    weights_format: FullyConnectedOptionsWeightsFormat = scalar(1, "byte", default=FullyConnectedOptionsWeightsFormat.DEFAULT, enum=FullyConnectedOptionsWeightsFormat)
    keep_num_dims: bool = scalar(2, "bool", default=False)
    asymmetric_quantize_inputs: bool = scalar(3, "bool", default=False)
    quantized_bias_type: TensorType = scalar(4, "byte", default=TensorType.FLOAT32, enum=TensorType)


class SoftmaxOptions(Table):
    """Table SoftmaxOptions."""

    beta: float = scalar(0, "float", default=0.0)


class ConcatenationOptions(Table):
    """Table ConcatenationOptions."""

    axis: int = scalar(0, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(1, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)


class AddOptions(Table):
    """Table AddOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    pot_scale_int16: bool = scalar(1, "bool", default=True)


class L2NormOptions(Table):
    """Table L2NormOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)


class LocalResponseNormalizationOptions(Table):
    """Table LocalResponseNormalizationOptions."""

    radius: int = scalar(0, "int", default=0)
    bias: float = scalar(1, "float", default=0.0)
    alpha: float = scalar(2, "float", default=0.0)
    beta: float = scalar(3, "float", default=0.0)


class LSTMOptions(Table):
    """Table LSTMOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    cell_clip: float = scalar(1, "float", default=0.0)
    proj_clip: float = scalar(2, "float", default=0.0)
    kernel_type: LSTMKernelType = scalar(3, "byte", default=LSTMKernelType.FULL, enum=LSTMKernelType)
    asymmetric_quantize_inputs: bool = scalar(4, "bool", default=False)


class ResizeBilinearOptions(Table):
    """Table ResizeBilinearOptions."""

    align_corners: bool = scalar(2, "bool", default=False)
    half_pixel_centers: bool = scalar(3, "bool", default=False)


class CallOptions(Table):
    """Table CallOptions."""

    subgraph: int = scalar(0, "uint", default=0)


class ReshapeOptions(Table):
    """Table ReshapeOptions."""

    new_shape: NDArray[np.int32] | None = vector(0, "int", default=None)


class SkipGramOptions(Table):
    """Table SkipGramOptions."""

    ngram_size: int = scalar(0, "int", default=0)
    max_skip_size: int = scalar(1, "int", default=0)
    include_all_ngrams: bool = scalar(2, "bool", default=False)


class SpaceToDepthOptions(Table):
    """Table SpaceToDepthOptions."""

    block_size: int = scalar(0, "int", default=0)


class EmbeddingLookupSparseOptions(Table):
    """Table EmbeddingLookupSparseOptions."""

    combiner: CombinerType = scalar(0, "byte", default=CombinerType.SUM, enum=CombinerType)


class MulOptions(Table):
    """Table MulOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)


class PadOptions(Table):
    """Table PadOptions."""



class GatherOptions(Table):
    """Table GatherOptions."""

    axis: int = scalar(0, "int", default=0)
    batch_dims: int = scalar(1, "int", default=0)


class BatchToSpaceNDOptions(Table):
    """Table BatchToSpaceNDOptions."""



class SpaceToBatchNDOptions(Table):
    """Table SpaceToBatchNDOptions."""



class TransposeOptions(Table):
    """Table TransposeOptions."""



class ReducerOptions(Table):
    """Table ReducerOptions."""

    keep_dims: bool = scalar(0, "bool", default=False)


class SubOptions(Table):
    """Table SubOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    pot_scale_int16: bool = scalar(1, "bool", default=True)


class DivOptions(Table):
    """Table DivOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)


class SqueezeOptions(Table):
    """Table SqueezeOptions."""

    squeeze_dims: NDArray[np.int32] | None = vector(0, "int", default=None)


class SequenceRNNOptions(Table):
    """Table SequenceRNNOptions."""

    time_major: bool = scalar(0, "bool", default=False)
    fused_activation_function: ActivationFunctionType = scalar(1, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    asymmetric_quantize_inputs: bool = scalar(2, "bool", default=False)


class StridedSliceOptions(Table):
    """Table StridedSliceOptions."""

    begin_mask: int = scalar(0, "int", default=0)
    end_mask: int = scalar(1, "int", default=0)
    ellipsis_mask: int = scalar(2, "int", default=0)
    new_axis_mask: int = scalar(3, "int", default=0)
    shrink_axis_mask: int = scalar(4, "int", default=0)
    offset: bool = scalar(5, "bool", default=False)


class ExpOptions(Table):
    """Table ExpOptions."""



class TopKV2Options(Table):
    """Table TopKV2Options."""



class SplitOptions(Table):
    """Table SplitOptions."""

    num_splits: int = scalar(0, "int", default=0)


class LogSoftmaxOptions(Table):
    """Table LogSoftmaxOptions."""



class CastOptions(Table):
    """Table CastOptions."""

    in_data_type: TensorType = scalar(0, "byte", default=TensorType.FLOAT32, enum=TensorType)
    out_data_type: TensorType = scalar(1, "byte", default=TensorType.FLOAT32, enum=TensorType)


class DequantizeOptions(Table):
    """Table DequantizeOptions."""



class MaximumMinimumOptions(Table):
    """Table MaximumMinimumOptions."""



class ArgMaxOptions(Table):
    """Table ArgMaxOptions."""

    output_type: TensorType = scalar(0, "byte", default=TensorType.FLOAT32, enum=TensorType)


class LessOptions(Table):
    """Table LessOptions."""



class NegOptions(Table):
    """Table NegOptions."""



class PadV2Options(Table):
    """Table PadV2Options."""



class GreaterOptions(Table):
    """Table GreaterOptions."""



class GreaterEqualOptions(Table):
    """Table GreaterEqualOptions."""



class LessEqualOptions(Table):
    """Table LessEqualOptions."""



class SelectOptions(Table):
    """Table SelectOptions."""



class SliceOptions(Table):
    """Table SliceOptions."""



class TransposeConvOptions(Table):
    """Table TransposeConvOptions."""

    padding: Padding = scalar(0, "byte", default=Padding.SAME, enum=Padding)
    stride_w: int = scalar(1, "int", default=0)
    stride_h: int = scalar(2, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(3, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    quantized_bias_type: TensorType = scalar(4, "byte", default=TensorType.FLOAT32, enum=TensorType)


class SparseToDenseOptions(Table):
    """Table SparseToDenseOptions."""

    validate_indices: bool = scalar(0, "bool", default=False)


class TileOptions(Table):
    """Table TileOptions."""



class ExpandDimsOptions(Table):
    """Table ExpandDimsOptions."""



class EqualOptions(Table):
    """Table EqualOptions."""



class NotEqualOptions(Table):
    """Table NotEqualOptions."""



class ShapeOptions(Table):
    """Table ShapeOptions."""

    out_type: TensorType = scalar(0, "byte", default=TensorType.FLOAT32, enum=TensorType)


class PowOptions(Table):
    """Table PowOptions."""



class ArgMinOptions(Table):
    """Table ArgMinOptions."""

    output_type: TensorType = scalar(0, "byte", default=TensorType.FLOAT32, enum=TensorType)


class FakeQuantOptions(Table):
    """Table FakeQuantOptions."""

    min: float = scalar(0, "float", default=0.0)
    max: float = scalar(1, "float", default=0.0)
    num_bits: int = scalar(2, "int", default=0)
    narrow_range: bool = scalar(3, "bool", default=False)


class PackOptions(Table):
    """Table PackOptions."""

    values_count: int = scalar(0, "int", default=0)
    axis: int = scalar(1, "int", default=0)


class LogicalOrOptions(Table):
    """Table LogicalOrOptions."""



class OneHotOptions(Table):
    """Table OneHotOptions."""

    axis: int = scalar(0, "int", default=0)


class LogicalAndOptions(Table):
    """Table LogicalAndOptions."""



class LogicalNotOptions(Table):
    """Table LogicalNotOptions."""



class UnpackOptions(Table):
    """Table UnpackOptions."""

    num: int = scalar(0, "int", default=0)
    axis: int = scalar(1, "int", default=0)


class FloorDivOptions(Table):
    """Table FloorDivOptions."""



class SquareOptions(Table):
    """Table SquareOptions."""



class ZerosLikeOptions(Table):
    """Table ZerosLikeOptions."""



class FillOptions(Table):
    """Table FillOptions."""



class BidirectionalSequenceLSTMOptions(Table):
    """Table BidirectionalSequenceLSTMOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    cell_clip: float = scalar(1, "float", default=0.0)
    proj_clip: float = scalar(2, "float", default=0.0)
    merge_outputs: bool = scalar(3, "bool", default=False)
    time_major: bool = scalar(4, "bool", default=True)
    asymmetric_quantize_inputs: bool = scalar(5, "bool", default=False)


class BidirectionalSequenceRNNOptions(Table):
    """Table BidirectionalSequenceRNNOptions."""

    time_major: bool = scalar(0, "bool", default=False)
    fused_activation_function: ActivationFunctionType = scalar(1, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    merge_outputs: bool = scalar(2, "bool", default=False)
    asymmetric_quantize_inputs: bool = scalar(3, "bool", default=False)


class UnidirectionalSequenceLSTMOptions(Table):
    """Table UnidirectionalSequenceLSTMOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    cell_clip: float = scalar(1, "float", default=0.0)
    proj_clip: float = scalar(2, "float", default=0.0)
    time_major: bool = scalar(3, "bool", default=False)
    asymmetric_quantize_inputs: bool = scalar(4, "bool", default=False)
    diagonal_recurrent_tensors: bool = scalar(5, "bool", default=False)


class FloorModOptions(Table):
    """Table FloorModOptions."""



class RangeOptions(Table):
    """Table RangeOptions."""



class ResizeNearestNeighborOptions(Table):
    """Table ResizeNearestNeighborOptions."""

    align_corners: bool = scalar(0, "bool", default=False)
    half_pixel_centers: bool = scalar(1, "bool", default=False)


class LeakyReluOptions(Table):
    """Table LeakyReluOptions."""

    alpha: float = scalar(0, "float", default=0.0)


class SquaredDifferenceOptions(Table):
    """Table SquaredDifferenceOptions."""



class MirrorPadOptions(Table):
    """Table MirrorPadOptions."""

    mode: MirrorPadMode = scalar(0, "byte", default=MirrorPadMode.REFLECT, enum=MirrorPadMode)


class AbsOptions(Table):
    """Table AbsOptions."""



class SplitVOptions(Table):
    """Table SplitVOptions."""

    num_splits: int = scalar(0, "int", default=0)


class UniqueOptions(Table):
    """Table UniqueOptions."""

    idx_out_type: TensorType = scalar(0, "byte", default=TensorType.INT32, enum=TensorType)


class ReverseV2Options(Table):
    """Table ReverseV2Options."""



class AddNOptions(Table):
    """Table AddNOptions."""



class GatherNdOptions(Table):
    """Table GatherNdOptions."""



class CosOptions(Table):
    """Table CosOptions."""



class WhereOptions(Table):
    """Table WhereOptions."""



class RankOptions(Table):
    """Table RankOptions."""



class ReverseSequenceOptions(Table):
    """Table ReverseSequenceOptions."""

    seq_dim: int = scalar(0, "int", default=0)
    batch_dim: int = scalar(1, "int", default=0)


class MatrixDiagOptions(Table):
    """Table MatrixDiagOptions."""



class QuantizeOptions(Table):
    """Table QuantizeOptions."""



class MatrixSetDiagOptions(Table):
    """Table MatrixSetDiagOptions."""



class HardSwishOptions(Table):
    """Table HardSwishOptions."""



class IfOptions(Table):
    """Table IfOptions."""

    then_subgraph_index: int = scalar(0, "int", default=0)
    else_subgraph_index: int = scalar(1, "int", default=0)


class WhileOptions(Table):
    """Table WhileOptions."""

    cond_subgraph_index: int = scalar(0, "int", default=0)
    body_subgraph_index: int = scalar(1, "int", default=0)


class DepthToSpaceOptions(Table):
    """Table DepthToSpaceOptions."""

    block_size: int = scalar(0, "int", default=0)


class NonMaxSuppressionV4Options(Table):
    """Table NonMaxSuppressionV4Options."""



class NonMaxSuppressionV5Options(Table):
    """Table NonMaxSuppressionV5Options."""



class ScatterNdOptions(Table):
    """Table ScatterNdOptions."""



class SelectV2Options(Table):
    """Table SelectV2Options."""



class DensifyOptions(Table):
    """Table DensifyOptions."""



class SegmentSumOptions(Table):
    """Table SegmentSumOptions."""



class BatchMatMulOptions(Table):
    """Table BatchMatMulOptions."""

    adjoint_lhs: bool = scalar(0, "bool", default=False)
    adjoint_rhs: bool = scalar(1, "bool", default=False)
    asymmetric_quantize_inputs: bool = scalar(2, "bool", default=False)


class CumsumOptions(Table):
    """Table CumsumOptions."""

    exclusive: bool = scalar(0, "bool", default=False)
    reverse: bool = scalar(1, "bool", default=False)


class CallOnceOptions(Table):
    """Table CallOnceOptions."""

    init_subgraph_index: int = scalar(0, "int", default=0)


class BroadcastToOptions(Table):
    """Table BroadcastToOptions."""



class Rfft2dOptions(Table):
    """Table Rfft2dOptions."""



class Conv3DOptions(Table):
    """Table Conv3DOptions."""

    padding: Padding = scalar(0, "byte", default=Padding.SAME, enum=Padding)
    stride_d: int = scalar(1, "int", default=0)
    stride_w: int = scalar(2, "int", default=0)
    stride_h: int = scalar(3, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(4, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    dilation_d_factor: int = scalar(5, "int", default=1)
    dilation_w_factor: int = scalar(6, "int", default=1)
    dilation_h_factor: int = scalar(7, "int", default=1)


class HashtableOptions(Table):
    """Table HashtableOptions."""

    table_id: int = scalar(0, "int", default=0)
    key_dtype: TensorType = scalar(1, "byte", default=TensorType.FLOAT32, enum=TensorType)
    value_dtype: TensorType = scalar(2, "byte", default=TensorType.FLOAT32, enum=TensorType)


class HashtableFindOptions(Table):
    """Table HashtableFindOptions."""



class HashtableImportOptions(Table):
    """Table HashtableImportOptions."""



class HashtableSizeOptions(Table):
    """Table HashtableSizeOptions."""



class VarHandleOptions(Table):
    """Table VarHandleOptions."""

    container: str | None = string(0, default=None)
    shared_name: str | None = string(1, default=None)


class ReadVariableOptions(Table):
    """Table ReadVariableOptions."""



class AssignVariableOptions(Table):
    """Table AssignVariableOptions."""



class RandomOptions(Table):
    """Table RandomOptions."""

    seed: int = scalar(0, "long", default=0)
    seed2: int = scalar(1, "long", default=0)


class BucketizeOptions(Table):
    """Table BucketizeOptions."""

    boundaries: NDArray[np.float32] | None = vector(0, "float", default=None)


class GeluOptions(Table):
    """Table GeluOptions."""

    approximate: bool = scalar(0, "bool", default=False)


class DynamicUpdateSliceOptions(Table):
    """Table DynamicUpdateSliceOptions."""



class UnsortedSegmentProdOptions(Table):
    """Table UnsortedSegmentProdOptions."""



class UnsortedSegmentMaxOptions(Table):
    """Table UnsortedSegmentMaxOptions."""



class UnsortedSegmentMinOptions(Table):
    """Table UnsortedSegmentMinOptions."""



class UnsortedSegmentSumOptions(Table):
    """Table UnsortedSegmentSumOptions."""



class ATan2Options(Table):
    """Table ATan2Options."""



class SignOptions(Table):
    """Table SignOptions."""



class BitcastOptions(Table):
    """Table BitcastOptions."""



class BitwiseXorOptions(Table):
    """Table BitwiseXorOptions."""



class RightShiftOptions(Table):
    """Table RightShiftOptions."""



class AttentionOptions(Table):
    """Table AttentionOptions."""



class RunModelOptions(Table):
    """Table RunModelOptions."""

    location: str | None = string(0, default=None)
    signature: str | None = string(1, default=None)


class RoPEOptions(Table):
    """Table RoPEOptions."""

    mode: RoPEMode = scalar(0, "int", default=RoPEMode.GPT_NEOX, enum=RoPEMode)


class RmsNormOptions(Table):
    """Table RmsNormOptions."""

    epsilon: float = scalar(0, "float", default=0.0)


class GRUOptions(Table):
    """Table GRUOptions."""

    fused_activation_function: ActivationFunctionType = scalar(0, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    return_sequences: bool = scalar(1, "bool", default=False)
    time_major: bool = scalar(2, "bool", default=False)


class BCQGatherOptions(Table):
    """Table BCQGatherOptions."""

    input_hidden_size: int = scalar(0, "int", default=0)
    axis: int = scalar(1, "int", default=0)


class BCQFullyConnectedOptions(Table):
    """Table BCQFullyConnectedOptions."""

    weights_hidden_size: int = scalar(0, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(1, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)


class InstanceNormOptions(Table):
    """Table InstanceNormOptions."""

    epsilon: float = scalar(0, "float", default=0.0)
    fused_activation_function: ActivationFunctionType = scalar(1, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)


class LQConv2DOptions(Table):
    """Table LQConv2DOptions."""

    padding: Padding = scalar(0, "byte", default=Padding.SAME, enum=Padding)
    stride_w: int = scalar(1, "int", default=0)
    stride_h: int = scalar(2, "int", default=0)
    dilation_w_factor: int = scalar(3, "int", default=1)
    dilation_h_factor: int = scalar(4, "int", default=1)
    input_channels: int = scalar(5, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(6, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    input_offset: float = scalar(7, "float", default=0.0)


class LQFullyConnectedOptions(Table):
    """Table LQFullyConnectedOptions."""

    hidden_size: int = scalar(0, "int", default=0)
    fused_activation_function: ActivationFunctionType = scalar(1, "byte", default=ActivationFunctionType.NONE, enum=ActivationFunctionType)
    input_offset: float = scalar(2, "float", default=0.0)


class StablehloConcatenateOptions(Table):
    """Table StablehloConcatenateOptions."""

    dimension: int = scalar(0, "long", default=0)


class StablehloBroadcastInDimOptions(Table):
    """Table StablehloBroadcastInDimOptions."""

    broadcast_dimensions: NDArray[np.int64] | None = vector(0, "long", default=None)


class StablehloSliceOptions(Table):
    """Table StablehloSliceOptions."""

    start_indices: NDArray[np.int64] | None = vector(0, "long", default=None)
    limit_indices: NDArray[np.int64] | None = vector(1, "long", default=None)
    strides: NDArray[np.int64] | None = vector(2, "long", default=None)


class StablehloConvolutionOptions(Table):
    """Table StablehloConvolutionOptions."""

    window_strides: NDArray[np.int64] | None = vector(0, "long", default=None)
    padding: NDArray[np.int64] | None = vector(1, "long", default=None)
    lhs_dilation: NDArray[np.int64] | None = vector(2, "long", default=None)
    rhs_dilation: NDArray[np.int64] | None = vector(3, "long", default=None)
    window_reversal: NDArray[np.bool_] | None = vector(4, "bool", default=None)
    input_batch_dimension: int = scalar(5, "long", default=0)
    input_feature_dimension: int = scalar(6, "long", default=0)
    input_spatial_dimensions: NDArray[np.int64] | None = vector(7, "long", default=None)
    kernel_input_feature_dimension: int = scalar(8, "long", default=0)
    kernel_output_feature_dimension: int = scalar(9, "long", default=0)
    kernel_spatial_dimensions: NDArray[np.int64] | None = vector(10, "long", default=None)
    output_batch_dimension: int = scalar(11, "long", default=0)
    output_feature_dimension: int = scalar(12, "long", default=0)
    output_spatial_dimensions: NDArray[np.int64] | None = vector(13, "long", default=None)
    feature_group_count: int = scalar(14, "long", default=0)
    batch_group_count: int = scalar(15, "long", default=0)
    precision_config: NDArray[np.uint32] | None = vector(16, "uint", default=None, enum=StablehloPrecisionConfig)


class StablehloCustomCallOptions(Table):
    """Table StablehloCustomCallOptions."""

    call_target_name: str | None = string(0, default=None)
    has_side_effect: bool = scalar(1, "bool", default=False)
    backend_config: str | None = string(2, default=None)
    api_version: int = scalar(3, "int", default=0)
    called_computations: NDArray[np.int32] | None = vector(4, "int", default=None)
    custom_attributes: NDArray[np.uint8] | None = vector(5, "ubyte", default=None)


class StablehloReduceOptions(Table):
    """Table StablehloReduceOptions."""

    dimensions: NDArray[np.int64] | None = vector(0, "long", default=None)
    body_subgraph_index: int = scalar(1, "int", default=0)


class StablehloScatterOptions(Table):
    """Table StablehloScatterOptions."""

    indices_are_sorted: bool = scalar(0, "bool", default=False)
    update_window_dims: NDArray[np.int64] | None = vector(1, "long", default=None)
    inserted_window_dims: NDArray[np.int64] | None = vector(2, "long", default=None)
    scatter_dims_to_operand_dims: NDArray[np.int64] | None = vector(3, "long", default=None)
    index_vector_dim: int = scalar(4, "long", default=0)
    unique_indices: bool = scalar(5, "bool", default=False)
    update_computation_subgraph_index: int = scalar(6, "int", default=0)


class StablehloCompareOptions(Table):
    """Table StablehloCompareOptions."""

    comparison_direction: StablehloComparisonDirection = scalar(0, "uint", default=StablehloComparisonDirection.STABLEHLO_COMPARISON_DIRECTION_EQ, enum=StablehloComparisonDirection)
    compare_type: StablehloComparisonType = scalar(1, "uint", default=StablehloComparisonType.STABLEHLO_COMPARISON_TYPE_NOTYPE, enum=StablehloComparisonType)


class StablehloDynamicSliceOptions(Table):
    """Table StablehloDynamicSliceOptions."""

    slice_sizes: NDArray[np.int64] | None = vector(0, "long", default=None)


class StablehloPadOptions(Table):
    """Table StablehloPadOptions."""

    edge_padding_low: NDArray[np.int64] | None = vector(0, "long", default=None)
    edge_padding_high: NDArray[np.int64] | None = vector(1, "long", default=None)
    interior_padding: NDArray[np.int64] | None = vector(2, "long", default=None)


class StablehloIotaOptions(Table):
    """Table StablehloIotaOptions."""

    iota_dimension: int = scalar(0, "long", default=0)


class StablehloDotGeneralOptions(Table):
    """Table StablehloDotGeneralOptions."""

    lhs_batching_dimensions: NDArray[np.int64] | None = vector(0, "long", default=None)
    rhs_batching_dimensions: NDArray[np.int64] | None = vector(1, "long", default=None)
    lhs_contracting_dimensions: NDArray[np.int64] | None = vector(2, "long", default=None)
    rhs_contracting_dimensions: NDArray[np.int64] | None = vector(3, "long", default=None)
    precision_config: NDArray[np.uint32] | None = vector(4, "uint", default=None, enum=StablehloPrecisionConfig)


class StablehloReduceWindowOptions(Table):
    """Table StablehloReduceWindowOptions."""

    window_dimensions: NDArray[np.int64] | None = vector(0, "long", default=None)
    window_strides: NDArray[np.int64] | None = vector(1, "long", default=None)
    base_dilations: NDArray[np.int64] | None = vector(2, "long", default=None)
    window_dilations: NDArray[np.int64] | None = vector(3, "long", default=None)
    padding: NDArray[np.int64] | None = vector(4, "long", default=None)
    body_subgraph_index: int = scalar(5, "int", default=0)


class StablehloSortOptions(Table):
    """Table StablehloSortOptions."""

    dimension: int = scalar(0, "long", default=0)
    is_stable: bool = scalar(1, "bool", default=False)
    comparator_subgraph_index: int = scalar(2, "int", default=0)


class StablehloWhileOptions(Table):
    """Table StablehloWhileOptions."""

    cond_subgraph_index: int = scalar(0, "int", default=0)
    body_subgraph_index: int = scalar(1, "int", default=0)


class StablehloGatherOptions(Table):
    """Table StablehloGatherOptions."""

    offset_dims: NDArray[np.int64] | None = vector(0, "long", default=None)
    collapsed_slice_dims: NDArray[np.int64] | None = vector(1, "long", default=None)
    start_index_map: NDArray[np.int64] | None = vector(2, "long", default=None)
    index_vector_dim: int = scalar(3, "long", default=0)
    slice_sizes: NDArray[np.int64] | None = vector(4, "long", default=None)
    indices_are_sorted: bool = scalar(5, "bool", default=False)


class StablehloTransposeOptions(Table):
    """Table StablehloTransposeOptions."""

    permutation: NDArray[np.int64] | None = vector(0, "long", default=None)


class DilateOptions(Table):
    """Table DilateOptions."""



class StablehloRngBitGeneratorOptions(Table):
    """Table StablehloRngBitGeneratorOptions."""

    algorithm: RngAlgorithm = scalar(0, "byte", default=RngAlgorithm.DEFAULT, enum=RngAlgorithm)


class ReduceWindowOptions(Table):
    """Table ReduceWindowOptions."""

    reduce_function: ReduceWindowFunction = scalar(0, "int", default=ReduceWindowFunction.UNSUPPORTED, enum=ReduceWindowFunction)


class StableHLOCompositeOptions(Table):
    """Table StableHLOCompositeOptions."""

    name: str | None = string(0, default=None)
    decomposition_subgraph_index: int = scalar(1, "int", default=0)
    composite_attributes: NDArray[np.uint8] | None = vector(2, "ubyte", default=None)
    composite_attributes_format: CustomOptionsFormat = scalar(3, "byte", default=CustomOptionsFormat.FLEXBUFFERS, enum=CustomOptionsFormat)
    version: int = scalar(4, "int", default=0)


class StablehloShiftLeftOptions(Table):
    """Table StablehloShiftLeftOptions."""



class StablehloCaseOptions(Table):
    """Table StablehloCaseOptions."""

    branch_subgraph_indices: NDArray[np.int32] | None = vector(0, "int", default=None)


class OperatorCode(Table):
    """Table OperatorCode."""

    deprecated_builtin_code: int = scalar(0, "byte", default=0)
    custom_code: str | None = string(1, default=None)
    version: int = scalar(2, "int", default=1)
    builtin_code: BuiltinOperator = scalar(3, "int", default=BuiltinOperator.ADD, enum=BuiltinOperator)


class Operator(Table):
    """Table Operator."""

    opcode_index: int = scalar(0, "uint", default=0)
    inputs: NDArray[np.int32] | None = vector(1, "int", default=None)
    outputs: NDArray[np.int32] | None = vector(2, "int", default=None)
    builtin_options: Table | None = union(4, "BuiltinOptions", default=None)
    custom_options: NDArray[np.uint8] | None = vector(5, "ubyte", default=None)
    custom_options_format: CustomOptionsFormat = scalar(6, "byte", default=CustomOptionsFormat.FLEXBUFFERS, enum=CustomOptionsFormat)
    mutating_variable_inputs: NDArray[np.bool_] | None = vector(7, "bool", default=None)
    intermediates: NDArray[np.int32] | None = vector(8, "int", default=None)
    large_custom_options_offset: int = scalar(9, "ulong", default=0)
    large_custom_options_size: int = scalar(10, "ulong", default=0)
    builtin_options_2: Table | None = union(12, "BuiltinOptions2", default=None)
    debug_metadata_index: int = scalar(13, "int", default=-1)


class SubGraph(Table):
    """Table SubGraph."""

    tensors: list[Tensor] | None = tables(0, "Tensor", default=None)
    inputs: NDArray[np.int32] | None = vector(1, "int", default=None)
    outputs: NDArray[np.int32] | None = vector(2, "int", default=None)
    operators: list[Operator] | None = tables(3, "Operator", default=None)
    name: str | None = string(4, default=None)
    debug_metadata_index: int = scalar(6, "int", default=-1)


class Buffer(Table):
    """Table Buffer."""

    data: NDArray[np.uint8] | None = vector(0, "ubyte", default=None, align=16)
    offset: int = scalar(1, "ulong", default=0)
    size: int = scalar(2, "ulong", default=0)


class Metadata(Table):
    """Table Metadata."""

    name: str | None = string(0, default=None)
    buffer: int = scalar(1, "uint", default=0)


class TensorMap(Table):
    """Table TensorMap."""

    name: str | None = string(0, default=None)
    tensor_index: int = scalar(1, "uint", default=0)


class SignatureDef(Table):
    """Table SignatureDef."""

    inputs: list[TensorMap] | None = tables(0, "TensorMap", default=None)
    outputs: list[TensorMap] | None = tables(1, "TensorMap", default=None)
    signature_key: str | None = string(2, default=None)
    subgraph_index: int = scalar(4, "uint", default=0)


class Model(Table):
    """Table Model."""

    version: int = scalar(0, "uint", default=0)
    operator_codes: list[OperatorCode] | None = tables(1, "OperatorCode", default=None)
    subgraphs: list[SubGraph] | None = tables(2, "SubGraph", default=None)
    description: str | None = string(3, default=None)
    buffers: list[Buffer] | None = tables(4, "Buffer", default=None)
    metadata_buffer: NDArray[np.int32] | None = vector(5, "int", default=None)
    metadata: list[Metadata] | None = tables(6, "Metadata", default=None)
    signature_defs: list[SignatureDef] | None = tables(7, "SignatureDef", default=None)


UNIONS.update(
    SparseIndexVector=enums.SparseIndexVector,
    QuantizationDetails=enums.QuantizationDetails,
    BuiltinOptions=enums.BuiltinOptions,
    BuiltinOptions2=enums.BuiltinOptions2,
)
