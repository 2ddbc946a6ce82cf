"""Groups of operators by what their names begin with, nested like folders.

A group is a run of operators that follow each other: whatever graph they form, the groups form one
without cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

MOST = 0.67
"""Share of the operators around it that a group may hold."""

DEEPEST = 16
"""Groups in groups: of longer paths, the last folders do not count."""


@dataclass(eq=False)
class Group:
    """A run of operators, by number, and of smaller groups."""

    title: str
    members: list[int | Group] = field(default_factory=list)

    def operators(self) -> Iterator[int]:
        """Return all operators inside, at any depth."""
        for member in self.members:
            if isinstance(member, Group):
                yield from member.operators()
            else:
                yield member

    def groups(self) -> Iterator[Group]:
        """Return all groups inside, at any depth, outer ones first."""
        for member in self.members:
            if isinstance(member, Group):
                yield member
                yield from member.groups()


def grouped(names: Sequence[str]) -> Group:
    """Return the operators with these names, in execution order, as a tree without a title."""
    paths = [_path(name) for name in names]
    return Group("", _dissolved(_members(list(range(len(names))), paths, 0)))


def _dissolved(members: list[int | Group]) -> list[int | Group]:
    """Return the members, with groups that hold most of everything replaced by their members: a box
    around nearly all tells nothing.
    """
    sizes = {id(m): sum(1 for _ in m.operators()) for m in members if isinstance(m, Group)}
    total = sum(sizes.get(id(m), 1) for m in members)
    kept: list[int | Group] = []
    for member in members:
        if not isinstance(member, Group):
            kept.append(member)
        elif sizes[id(member)] > MOST * total:
            kept += _dissolved(member.members)
        else:
            kept.append(Group(member.title, _dissolved(member.members)))
    return kept


def _path(name: str) -> tuple[str, ...]:
    """Return the folders of a name; of a fused operator's several names, the first counts."""
    folders = name.partition(";")[0].split("/")[:-1]
    return tuple([part for part in folders if part][:DEEPEST])


def _members(run: list[int], paths: Sequence[tuple[str, ...]], depth: int) -> list[int | Group]:
    members: list[int | Group] = []
    for title, part in groupby(run, lambda i: paths[i][depth] if depth < len(paths[i]) else None):
        inside = list(part)
        if title is None or len(inside) == 1:
            members += inside
            continue
        inner = _members(inside, paths, depth + 1)
        if len(inner) == 1 and isinstance(inner[0], Group):
            members.append(Group(f"{title}/{inner[0].title}", inner[0].members))
        else:
            members.append(Group(title, inner))
    return members
