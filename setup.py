"""Build luciole. setup.cfg says all but how README reads on an index and how files are packed."""

from __future__ import annotations

import configparser
import gzip
import os
import re
import tarfile
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg", encoding="utf-8")
SOURCES, INDEX = CONFIG["addresses"]["sources"], CONFIG["addresses"]["index"]

PICTURE = re.compile(r"<picture>.*?</picture>\n*|!\[[^\]]*\]\([^)]+\)\n*", re.S)
LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+:)([^)]+)\)")


def readme(text: str, address: str) -> str:
    """Return README as an index shows it: files by their address, or, without one, neither
    pictures nor links, which would lead nowhere from there.
    """
    if not address:
        return LINK.sub(r"\1", PICTURE.sub("", text))
    pictures = re.sub(r'((?:src|srcset)="|!\[[^\]]*\]\()(docs/)', rf"\1{address}/raw/main/\2", text)
    return LINK.sub(rf"[\1]({address}/blob/main/\2)", pictures)


def addresses(sources: str, index: str) -> dict[str, Any]:
    """Return what the metadata says of where luciole is: nothing as long as it is nowhere."""
    pages = {"Source": "", "Issues": "/issues", "Changelog": "/blob/main/CHANGELOG.md"}
    links = {"project_urls": {name: sources + path for name, path in pages.items()}}
    return (links if sources else {}) | ({"download_url": index} if index else {})


def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Take out of an archive's entry who packed it, and when."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


class SourceArchive(sdist):
    """An sdist whose bytes follow from its files and from SOURCE_DATE_EPOCH, where that is set."""

    def make_archive(
        self,
        base_name: str,
        format: str,
        root_dir: str | None = None,
        base_dir: str | None = None,
        owner: str | None = None,
        group: str | None = None,
    ) -> str:
        """Pack the files of a folder in the order of their names."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if not epoch or format != "gztar" or base_dir is None:
            return str(super().make_archive(base_name, format, root_dir, base_dir, owner, group))
        target = Path(f"{base_name}.tar.gz")
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            target.open("wb") as file,
            gzip.GzipFile("", "wb", 9, file, float(epoch)) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            for path in sorted(Path(base_dir).rglob("*")):
                if path.is_file():
                    archive.add(path, recursive=False, filter=plain)
        return str(target)


setup(
    cmdclass={"sdist": SourceArchive},
    long_description=readme((ROOT / "README.md").read_text(encoding="utf-8"), SOURCES),
    long_description_content_type="text/markdown",
    **addresses(SOURCES, INDEX),
)
