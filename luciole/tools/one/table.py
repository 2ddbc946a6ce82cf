"""The programs of ONE's that answer here, and what stands for each of their options.

The entry points of setup.cfg, the translation and the page "Coming from ONE" follow this table.
"""

from __future__ import annotations

from luciole.tools.one.alias import HOLDS, Alias, Then, option, switch
from luciole.tools.one.switches import SWITCHES

_NO_TABLES = "no tables of an operator's origin are written"
_NO_FILES = "all is one step here, without files in between"
_PARAMETERS = "scales of single tensors are not set by a program"
_MAX_POOL = "a MAX_POOL_2D whose scales differ has a QUANTIZE behind it here"
_MOVING = "record-minmax's moving average over batches is not computed, its percentiles are"
_STEPS = "up to 256 steps stand one behind the other, longer sequences are a WHILE"
_TOLD = "the content says of which kind the data are"

_FORMATS = {
    **dict.fromkeys(("h5", "hdf5"), HOLDS),
    **dict.fromkeys(("list", "filelist", "dir", "directory"), "--allow-outside"),
}

VERBOSE = switch("-V --verbose", "--debug", "an error shows its traceback")
PROFILE = switch("-p --generate_profile_data", None, _NO_TABLES)
INTERMEDIATE = switch("--save_intermediate", None, _NO_FILES)
FORMAT = option("-f --input_data_format", "FORMAT", _FORMATS, _TOLD)
RANDOM = "--data random:3"

IN = option("-i --input_path", "FILE", "MODEL", required=True)
SOURCE = option("-i --input_path", "FILE", "SOURCE", required=True)
OUT = option("-o --output_path", "FILE", "--output", required=True)
OPERANDS = (
    option("input", "FILE", "MODEL", required=True),
    option("output", "FILE", "--output", required=True),
)

RECORDING = (
    option(
        "--min_percentile",
        "PERCENT",
        HOLDS,
        "0.1 goes with --max_percentile 99.9: both add up to 100",
    ),
    option("--max_percentile", "PERCENT", "--ranges record_percentile:{}"),
    option("--mode", "MODE", {"percentile": HOLDS}, _MOVING),
    option("--moving_avg_batch", "N", None, _MOVING),
    option("--moving_avg_const", "C", None, _MOVING),
)

ENDS = (
    option("--input_type", "TYPE", "--input-type", "one type for all inputs"),
    option("--output_type", "TYPE", "--output-type", "one type for all outputs"),
)

MEASURES = tuple(
    switch(f"--print_{word}", f"--print {measure}")
    for word, measure in (
        *(("mae", "mae"), ("mape", "mape"), ("mpeir", "mpeir"), ("mse", "mse")),
        *(("top1_match", "top1"), ("top5_match", "top5")),
    )
)

EVALUATION = Then(
    "diff",
    "--evaluate_result",
    ("--input_path", "--output_path"),
    (
        switch("--evaluate_result", HOLDS, "runs `luciole diff` behind"),
        option("--test_data", "DATA", "--data", absent="--data random:3"),
        *MEASURES,
    ),
)

_QUANTIZED = "--compatible one --no-proof"
_INPUT_TYPES = {"float32": HOLDS}

QUANTIZE = (
    IN,
    OUT,
    option("-d --input_data", "DATA", "--data", "without it 3 random records", absent=RANDOM),
    FORMAT,
    option("--input_dtype --input_model_dtype", "TYPE", _INPUT_TYPES),
    option("--quantized_dtype", "TYPE", {t: f"--scheme {t}" for t in ("uint8", "int16")}),
    option("--granularity", "WORD", "--granularity"),
    *ENDS,
    *RECORDING,
    option("--quant_config", "FILE", "--config"),
    switch("--TF-style_maxpool", None, _MAX_POOL),
    switch("--save_min_max", None, "min and max are in no file of integers here"),
    INTERMEDIATE,
    PROFILE,
    VERBOSE,
    switch("--force_quantparam", None, _PARAMETERS),
    option("--tensor_name", "NAME", None, _PARAMETERS, repeated=True),
    option("--scale", "NUMBER", None, _PARAMETERS, repeated=True),
    option("--zero_point", "NUMBER", None, _PARAMETERS, repeated=True),
    switch("--copy_quantparam", None, _PARAMETERS),
    option("--src_tensor_name", "NAME", None, _PARAMETERS, repeated=True),
    option("--dst_tensor_name", "NAME", None, _PARAMETERS, repeated=True),
    switch("--ampq", None, "`luciole quantize --scheme mixed --target-drop` chooses bits by layer"),
)

_REQUANTIZED = {"int8 uint8": "--requantize uint8"}
_ALONE = {
    "float32 int8 channel": "--compatible one --scheme weights",
    "float32 int16 channel": "--compatible one --scheme weights_int16",
}


def _step(name: str) -> dict[str, str]:
    """Return the words for a step of ONE's quantizer, by element types and granularity."""
    kinds = (("uint8", "layer"), ("uint8", "channel"), ("int16", "channel"))
    return {
        f"float32 {dtype} {granularity}": f"--compatible one --step {name} --scheme {dtype} "
        f"--granularity {granularity}"
        for dtype, granularity in kinds
    }


ALIASES: tuple[Alias, ...] = (
    Alias(
        "one-import-tflite",
        "import",
        "turns a .tflite file into a .circle file",
        (SOURCE, OUT, INTERMEDIATE, VERBOSE),
        driver=True,
    ),
    Alias(
        "one-import-tf",
        "import",
        "turns a SavedModel or a Keras file into a .circle file",
        (
            SOURCE,
            OUT,
            option(
                "--model_format",
                "WORD",
                dict.fromkeys(("saved_model", "keras_model"), HOLDS),
                "graphs of TensorFlow 1 (.pb) are not read",
            ),
            switch("--saved_model", HOLDS, _TOLD),
            switch("--keras_model", HOLDS, _TOLD),
            switch("--graph_def", None, "graphs of TensorFlow 1 (.pb) are not read"),
            option("--converter_version", "WORD", dict.fromkeys(("v1", "v2"), HOLDS)),
            switch("--v1", HOLDS, "TensorFlow's own converter runs"),
            switch("--v2", HOLDS, "TensorFlow's own converter runs"),
            option("-I --input_arrays", "NAMES", None, "all inputs of the file are read"),
            option("-O --output_arrays", "NAMES", None, "all outputs of the file are read"),
            option("-s --input_shapes", "SHAPES", None, "`--batch` of `luciole import` sets one"),
            INTERMEDIATE,
            VERBOSE,
        ),
        driver=True,
    ),
    Alias(
        "one-import-onnx",
        "import",
        "turns an .onnx file into a .circle file",
        (
            SOURCE,
            OUT,
            option("-I --input_arrays", "NAMES", None, "all inputs of the file are read"),
            option("-O --output_arrays", "NAMES", None, "all outputs of the file are read"),
            option("--model_format", "WORD", {"saved_model": HOLDS}),
            option("--converter_version", "WORD", {"v2": HOLDS}),
            switch("--unroll_rnn", HOLDS, _STEPS),
            switch("--unroll_lstm", HOLDS, _STEPS),
            switch("--keep_io_order", HOLDS, "inputs and outputs keep order and names"),
            switch("--experimental_disable_batchmatmul_unfold", HOLDS, "none is unfolded"),
            INTERMEDIATE,
            VERBOSE,
        ),
        driver=True,
    ),
    Alias(
        "one-optimize",
        "optimize",
        "rewrites a model by the passes that are named",
        (
            IN,
            OUT,
            option(
                "-O",
                "GROUP",
                {"1": "--passes o1"},
                "O1 alone is there, the passes that `luciole optimize --list` shows",
            ),
            *SWITCHES,
            PROFILE,
            switch("-V --verbose", "--explain"),
        ),
        always="--passes remove_dead,infer_shapes",
        driver=True,
    ),
    Alias(
        "one-quantize",
        "quantize",
        "lets a network of integers compute with floats",
        (
            switch("--fake_quantize", "--simulate"),
            IN,
            OUT,
            VERBOSE,
        ),
        when="--fake_quantize",
        driver=True,
    ),
    Alias(
        "one-quantize",
        "quantize",
        "turns integers into others",
        (
            switch("--requantize", HOLDS),
            option("--input_dtype --input_model_dtype", "TYPE", {"int8": HOLDS}, required=True),
            option("--quantized_dtype", "TYPE", {"uint8": "--requantize uint8"}, required=True),
            IN,
            OUT,
            VERBOSE,
        ),
        when="--requantize",
        driver=True,
    ),
    Alias(
        "one-quantize",
        "quantize",
        "quantizes a float network to ONE's numbers",
        QUANTIZE,
        always=_QUANTIZED,
        then=EVALUATION,
        driver=True,
    ),
    Alias(
        "one-pack",
        "pack",
        "puts a model into an nnpackage",
        (
            option("-i --input_path", "FILE", "MODEL", required=True),
            option("-o --output_path", "FOLDER", "--output", required=True),
            VERBOSE,
        ),
        driver=True,
    ),
    Alias(
        "onecc",
        "build",
        "runs the steps of a configuration",
        (
            option("-C --config", "FILE", "JOB", required=True),
            option("-O", "GROUP", None, "`include=O1` in the section onecc asks for it"),
            option("-W --workflow", "FILE", None, "a job in TOML says the same: `luciole build`"),
            option("-b --backend", "NAME", None, "backends' own compilers are not called"),
            VERBOSE,
        ),
    ),
    Alias(
        "circle2circle",
        "optimize",
        "rewrites a model by the passes that are named",
        (
            *OPERANDS,
            *SWITCHES,
            switch("--generate_profile_data", None, _NO_TABLES),
            switch("-V --verbose", "--explain"),
        ),
        always="--passes remove_dead,infer_shapes",
    ),
    Alias(
        "circle-quantizer",
        "quantize",
        "rounds weights, quantizes by recorded ranges, or turns integers into others",
        (
            *OPERANDS,
            option("--quantize_weights", "FROM TO GRANULARITY", _ALONE),
            option("--requantize", "FROM TO", _REQUANTIZED),
            switch("--fake_quantize", "--simulate"),
            option("--quantize_dequantize_weights", "FROM TO GRANULARITY", _step("weights")),
            option("--quantize_with_minmax", "FROM TO GRANULARITY", _step("integers")),
            option("--force_quantparam", "NAME SCALE ZERO", None, _PARAMETERS, repeated=True),
            option("--copy_quantparam", "FROM TO", None, _PARAMETERS, repeated=True),
            *ENDS,
            option("--config", "FILE", "--config"),
            switch("--TF-style_maxpool", None, _MAX_POOL),
            switch("--save_min_max", None, "min and max are in no file of integers here"),
            switch("--generate_profile_data", None, _NO_TABLES),
            VERBOSE,
        ),
        always="--no-proof",
        one_of=(
            "--quantize_dequantize_weights",
            "--quantize_with_minmax",
            "--quantize_weights",
            "--requantize",
            "--fake_quantize",
        ),
    ),
    Alias(
        "record-minmax",
        "quantize",
        "notes min and max of every tensor in a file",
        (
            option("--input_model", "FILE", "MODEL", required=True),
            option("--output_model", "FILE", "--output", required=True),
            option("--input_data", "DATA", "--data", "without it 3 random records", absent=RANDOM),
            option("--input_data_format", "FORMAT", _FORMATS, _TOLD),
            *RECORDING,
            option("--num_threads", "N", None, "records run on one thread"),
            switch("--generate_profile_data", None, _NO_TABLES),
            VERBOSE,
        ),
        always="--compatible one --step ranges --no-proof",
    ),
    Alias(
        "circle-opselector",
        "extract",
        "makes a model of some of a model's operators",
        (
            option("input", "FILE", "MODEL", required=True),
            option("output", "FILE", "-o {}", required=True),
            option("--by_id", "NUMBERS", "--number"),
            option("--by_name", "NAMES", "--name", listed=True),
            VERBOSE,
        ),
    ),
    Alias(
        "circle-partitioner",
        "split",
        "makes a model of each backend's operators, and a description of how they are joined",
        (
            option("--part_file", "FILE", "--partition", required=True),
            option("--input_file", "FILE", "MODEL", required=True),
            option("--default", "BACKEND", "--default"),
            option("--backends", "NAMES", None, "`backends=` in the partition file says them"),
            option("--work_path", "FOLDER", None, "name files with their folders"),
            VERBOSE,
        ),
    ),
    Alias(
        "circle-resizer",
        "resize",
        "gives inputs other shapes",
        (
            option("--input_path", "FILE", "MODEL", required=True),
            option("--output_path", "FILE", "-o {}", required=True),
            option("--input_shapes", "SHAPES", "--shape", required=True, listed=True),
            VERBOSE,
        ),
    ),
    Alias(
        "circle-interpreter",
        "run",
        "computes a model's outputs from files of bytes",
        (
            option("model", "FILE", "MODEL", required=True),
            option("input_prefix", "PREFIX", "--data each:{}", required=True),
            option("output_prefix", "PREFIX", "-o each:{}", required=True),
            VERBOSE,
        ),
    ),
    Alias(
        "circle-eval-diff",
        "diff",
        "measures how far a model's outputs are from another one's",
        (
            option("--first_model --first_input_model", "FILE", "MODEL", required=True),
            option("--second_model --second_input_model", "FILE", "OTHER", required=True),
            option("--first_input_data", "DATA", "--data", absent="--data random:3"),
            option(
                "--second_input_data",
                "DATA",
                HOLDS,
                "both models read the same records, quantized for inputs of integers",
            ),
            option("--input_data_format", "FORMAT", _FORMATS, _TOLD),
            option(
                "--metric",
                "WORD",
                {word: f"--print {word.lower()}" for word in ("MAE", "mae", "MAPE", "mape")},
            ),
            *MEASURES,
            option("--dump_output_with_prefix", "PREFIX", None, "outputs are not written"),
            VERBOSE,
        ),
    ),
)

WITHOUT = {
    "one-import-bcq": "TensorFlow's graphs with BCQ in them are not read",
    "one-import-pytorch": "export an .onnx file from PyTorch, which one-import-onnx reads",
    "one-partition": "`luciole split --partition` and circle-partitioner make the parts",
    "one-codegen": "a backend's own compiler writes it; `luciole compile` writes C99",
    "one-profile": "a backend's own profiler runs it; `luciole bench` measures here",
    "one-infer": "a backend's own driver runs it; `luciole run` computes here",
}
"""Programs of ONE's that onecc runs and that have no counterpart, and why."""


def names() -> list[str]:
    """List the names of all programs of ONE's, each once."""
    return list(dict.fromkeys(alias.name for alias in ALIASES))


def forms(name: str) -> list[Alias]:
    """List the forms of a program of ONE's; the one without ``when`` is the last."""
    return [alias for alias in ALIASES if alias.name == name]
