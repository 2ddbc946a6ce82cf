"""Write files so that a reader never sees half of one, and read or map them.

Links, devices and pipes stay what they are.
"""

from luciole.files.filling import Fill, filling
from luciole.files.mapping import contents_of
from luciole.files.places import own_descriptor
from luciole.files.scratch import scratch
from luciole.files.writing import check_writable, replacing, write_file, write_files, write_folder

__all__ = [
    "Fill",
    "check_writable",
    "contents_of",
    "filling",
    "own_descriptor",
    "replacing",
    "scratch",
    "write_file",
    "write_files",
    "write_folder",
]
