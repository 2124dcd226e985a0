"""Reads git repositories without trusting them and without writing to them.

Import the modules by name; this package file imports nothing, so that a hook which needs only the state of a worktree
does not pay for the rest.

- :mod:`~passdown.git.locate` finds the repository around a folder, without running git.
- :mod:`~passdown.git.reader` answers every question about commits, refs, ancestry and the worktree.
- :mod:`~passdown.git.state` keeps which workstream a worktree is on, in the worktree's own git directory. It is the
  only module that writes there.
- :mod:`~passdown.git.shadow` is the one place that runs git: in a private git directory whose configuration is ours.

Facts come back as the frozen values of :mod:`~passdown.git.facts`. Bytes that are not UTF-8 are shown as ``\\xNN``.
"""
