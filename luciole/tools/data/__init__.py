"""The one loader of calibration and evaluation data, for every program."""

from luciole.ir.value import has_batch_axis
from luciole.tools.data.asked import asked_data
from luciole.tools.data.bounds import Bounds
from luciole.tools.data.errors import DataError
from luciole.tools.data.hdf5 import write_hdf5
from luciole.tools.data.load import Data, load_data

__all__ = [
    "Bounds",
    "Data",
    "DataError",
    "asked_data",
    "has_batch_axis",
    "load_data",
    "write_hdf5",
]
