"""Ask the tools of ``nbext mcp`` by the official client: ``python -m tests.agents.ask [--folder DIR] [TOOL [JSON]]``.

Without a tool it prints the list of tools. The settings are those of the environment: NBEXT_DATA_DIR, NBEXT_BASE_URL.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client


@asynccontextmanager
async def connected(
    *options: str, log: Path = Path(os.devnull), **variables: str
) -> AsyncIterator[Client]:
    """The SDK's client of a server of its own, a process with these variables; ``log`` gets its stderr."""
    process = StdioServerParameters(
        command=sys.executable,
        args=["-m", "nbext.cli", "mcp", *options],
        env={**os.environ, **variables},
    )
    with log.open("a") as errors:
        async with Client(stdio_client(process, errlog=errors)) as client:
            yield client


async def print_answer(options: list[str], tool: str | None, asked: Mapping[str, object]) -> None:
    """Print what a tool answers, or the list of tools."""
    async with connected(*options) as client:
        if tool is None:
            for one in (await client.list_tools()).tools:
                print(f"{one.name}: {one.description}\n  {json.dumps(one.input_schema)}\n")
            return
        answer = await client.call_tool(tool, dict(asked))
        print(answer.content[0].text)
        print(json.dumps(answer.structured_content, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    words = sys.argv[1:]
    folder = [words.pop(0), words.pop(0)] if words[:1] == ["--folder"] else []
    tool, text = [*words, None][:1][0], [*words, "{}", "{}"][1]
    asyncio.run(print_answer(folder, tool, json.loads(text if words[1:] else "{}")))
