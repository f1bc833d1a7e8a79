"""The segment language: the four steps from a request to a question, and its schema."""

from __future__ import annotations

from nbext.segment.canonical import segment_id
from nbext.segment.compile import compile, parts  # noqa: A004  the step's name
from nbext.segment.parse import parse
from nbext.segment.resolve import resolve
from nbext.segment.schema import json_schema

__all__ = ["compile", "json_schema", "parse", "parts", "resolve", "segment_id"]
