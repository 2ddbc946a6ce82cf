"""Build luciole. setup.cfg says everything but where files are read, and how README reads there."""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import setup

FILES = ""
"""The address before a file's path, as in https://HOST/OWNER/luciole/blob/main. Without one, links
to files, which lead nowhere from a package index, are left out of the README that is shown there.
"""

README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
LINK = r"\[([^\]]+)\]\((?![a-z]+:)([^)]+)\)"

setup(
    long_description=re.sub(LINK, rf"[\1]({FILES}/\2)" if FILES else r"\1", README),
    long_description_content_type="text/markdown",
    project_urls={"Source": FILES} if FILES else {},
)
