"""Markdown pages of a canonical report, in zh-CN and en: a projection for people that decides nothing.

Public: :func:`render_markdown` and the renderer versions that stand in a report.
"""

from passdown.report.render.document import RENDERER_VERSIONS, render_markdown

__all__ = ["RENDERER_VERSIONS", "render_markdown"]
