"""Questions about ancestry, answered on a graph in memory: pure functions.

A :data:`Graph` maps a commit to its parents. It is a part of the history: parents that are no keys are outside of it.
Git prints such parts quickly, but decides by commit times where to stop, and times may be absurd. Git then prints too
much, never too little; so every function here is right on any part that holds *at least* the commits it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Graph = Mapping[str, tuple[str, ...]]


def parse_graph(output: bytes) -> dict[str, tuple[str, ...]]:
    """The graph that ``git rev-list --parents`` prints: one line per commit, the commit and then its parents."""
    graph: dict[str, tuple[str, ...]] = {}
    for line in output.decode("ascii").split("\n"):
        if line:
            commit, *parents = line.split(" ")
            graph[commit] = tuple(parents)
    return graph


def reachable(graph: Graph, start: str) -> set[str]:
    """``start`` and all its ancestors as far as the graph knows them, with the first ones outside of it."""
    seen = {start}
    waiting = [start]
    while waiting:
        for parent in graph.get(waiting.pop(), ()):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return seen


def containing(graph: Graph, tips: Iterable[str], marks: Iterable[str]) -> dict[str, set[str]]:
    """For each tip those of ``marks`` that are the tip or an ancestor of it."""
    order = list(dict.fromkeys(marks))
    bits = {mark: 1 << at for at, mark in enumerate(order)}
    masks: dict[str, int] = {}
    result: dict[str, set[str]] = {}
    for tip in tips:
        waiting = [tip]
        while waiting:
            commit = waiting[-1]
            if commit in masks:
                waiting.pop()
                continue
            missing = [parent for parent in graph.get(commit, ()) if parent not in masks]
            if missing:
                waiting.extend(missing)
                continue
            mask = bits.get(commit, 0)
            for parent in graph.get(commit, ()):
                mask |= masks[parent]
            masks[commit] = mask
            waiting.pop()
        result[tip] = {mark for mark in order if masks[tip] & bits[mark]}
    return result


def certainly_diverged(graph: Graph, one: str, other: str, boundary: frozenset[str]) -> bool:
    """Whether two commits, neither of which is seen to descend from the other, are certain not to.

    ``boundary`` are the commits whose parents are hidden (a shallow clone). One could descend from the other through
    such a commit, unless that is an ancestor of both: then a hidden path would close a circle.
    """
    return reachable(graph, one) & boundary == reachable(graph, other) & boundary
