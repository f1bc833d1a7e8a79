"""A real kernel in a process of its own, spoken to as a front end would."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

from jupyter_client.manager import KernelManager

SECONDS = 60


@dataclass
class Outputs:
    """Everything that a cell sent: its messages in order, and how it ended."""

    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def printed(self) -> str:
        """What was written to stdout and stderr."""
        return "".join(content["text"] for kind, content in self.messages if kind == "stream")

    @property
    def error(self) -> str:
        """The error as the front end shows it."""
        return "\n".join(self.reply.get("traceback", []))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The contents of the messages of one kind."""
        return [content for one, content in self.messages if one == kind]


class Kernel:
    """One kernel; ``run`` runs a cell, ``interrupt`` is what the stop button does."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client

    def run(
        self, cell: str, *, during: Callable[[], None] | None = None, answer: str | None = None
    ) -> Outputs:
        start = time.monotonic()
        wanted = self.client.execute(cell, allow_stdin=answer is not None)
        if during is not None:
            during()
        outputs = Outputs()
        while True:
            message = self._next(wanted, outputs, answer, start)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            outputs.messages.append((message["msg_type"], message["content"]))
        outputs.seconds = time.monotonic() - start
        outputs.reply = self._reply(wanted)
        return outputs

    def _reply(self, wanted: str) -> dict[str, Any]:
        """The answer to one request; answers to others, such as the start's, are passed over."""
        while True:
            message = self.client.get_shell_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") == wanted:
                return dict(message["content"])

    def _next(self, wanted: str, outputs: Outputs, answer: str | None, start: float) -> Any:
        while time.monotonic() - start < SECONDS:
            if answer is not None:
                try:
                    outputs.asked.append(self.client.get_stdin_msg(timeout=0.02)["content"])
                    self.client.input(answer)
                except Empty:
                    pass
            try:
                message = self.client.get_iopub_msg(timeout=0.1)
            except Empty:
                continue
            if message["parent_header"].get("msg_id") == wanted:
                return message
        raise AssertionError(f"the kernel did not finish within {SECONDS} s")

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()

    def complete(self, code: str) -> list[str]:
        return list(self._reply(self.client.complete(code, len(code)))["matches"])


@contextmanager
def running_kernel(**environ: str) -> Iterator[Kernel]:
    """A kernel with nbext loaded, in an environment of its own."""
    # Not by TCP: another process may take the ports that are chosen for a kernel before it has them.
    manager = KernelManager(transport="ipc")
    manager.start_kernel(env={**os.environ, **environ})
    client = manager.blocking_client()
    client.start_channels()
    kernel = Kernel(manager, client)
    try:
        client.wait_for_ready(timeout=SECONDS)
        assert kernel.run("%load_ext nbext").reply["status"] == "ok"
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
