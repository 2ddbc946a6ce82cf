"""One HTML page that holds everything: markup, style, scripts and the document."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib import resources
from typing import Any

Json = dict[str, Any]

MODULES = (
    "dom",
    "format",
    "blobs",
    "letters",
    "boxes",
    "compose",
    "colours",
    "draw",
    "graph_view",
    "minimap",
    "charts",
    "values",
    "levels",
    "sidebar",
    "find",
    "tables",
    "pictures",
    "keys",
    "links",
    "menus",
    "merging",
    "opening",
    "start",
    "main",
)
"""The scripts, each after those that it imports from."""

_IMPORT = re.compile(r'^import (\{.*?\}) from "\./(\w+)\.js";$', re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def html(document: Json, embedded: dict[str, str]) -> str:
    """Write the page of a document; ``embedded`` are arrays by number, as base64.

    A page that is not served allows itself no request at all, by its content security policy.
    """
    code = script()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode("ascii")
    requests = "'self'" if document["served"] else "'none'"
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        f"img-src data: blob:; connect-src {requests}; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "POLICY": policy,
        "TITLE": escape(document["title"]),
        "STYLE": _asset("style.css"),
        "DOCUMENT": _for_script(document),
        "BLOBS": _for_script(embedded),
        "SCRIPT": code,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def script() -> str:
    """Join all modules to one script, each in a function of its own that returns what it
    exports.
    """
    return '"use strict";\n' + "\n".join(_enclosed(name, _asset(f"{name}.js")) for name in MODULES)


def _enclosed(name: str, module: str) -> str:
    exports = ", ".join(match[1] for match in _EXPORT.finditer(module))
    body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = modules.\2;", module))
    start = "const modules = {};\n" if name == MODULES[0] else ""
    return f"{start}modules.{name} = (() => {{\n{body}return {{ {exports} }};\n}})();"


def _for_script(content: Any) -> str:
    """Write JSON inside a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (resources.files("luciole.drawing") / "page" / name).read_text("utf-8")
