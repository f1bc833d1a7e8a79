"""The segment language: the four steps from a request to a question, and its schema."""

from __future__ import annotations

from nbext.language.canonical import segment_id
from nbext.language.compile import compile, parts  # noqa: A004  the step's name
from nbext.language.json_schema import json_schema
from nbext.language.parse import parse
from nbext.language.resolve import resolve

__all__ = ["compile", "json_schema", "parse", "parts", "resolve", "segment_id"]
