"""One call in a process of its own with limits of time and memory: for the first steps with what others have sent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from grb.errors import DataError
from grb.pipeline.engine import POLL, Limits, worker_environment
from grb.pipeline.pool import Answer, Do, Pool
from grb.pipeline.serving import guard, sentence_of

# as for jobs: the server that forks workers imports them once, whoever is the first to need it
PRELOAD = ("grb.pipeline.worker", "torch._dynamo")


def apart(call: Callable[..., Any], *arguments: Any, limits: Limits, what: str) -> Any:
    """What a function gives; whatever goes wrong in it is a refusal here.

    Args:
        call: Importable; gives plain values, as JSON has them.
        arguments: Small, for they go through a pipe.
        limits: Seconds and megabytes of this call.
        what: What is dealt with, for the refusal.
    """
    with worker_environment():
        pool = Pool(1, _serve, preload=PRELOAD, timeout=limits.timeout, memory=limits.memory)
        try:
            pool.give("call", call, arguments)
            while True:
                for answer in pool.answers(POLL):
                    if answer.exitcode is None or answer.begun:
                        return _value(answer, limits, what)
                    pool.give("call", call, arguments)  # its worker never started; the pool counts these
        finally:
            pool.close()


def _value(answer: Answer, limits: Limits, what: str) -> Any:
    if answer.late:
        raise DataError(f"{what} took more than {limits.timeout:g} seconds; if it may, allow more (--timeout)")
    if answer.fat:
        raise DataError(f"{what} took more than {limits.memory:g} MB of memory; if it may, allow more (--memory)")
    if answer.exitcode is not None:
        raise DataError(f"{what} killed its process (exit code {answer.exitcode}); is there enough memory?")
    value, sentence = answer.value
    if sentence:
        raise DataError(sentence)
    return value


def _serve() -> Do:
    """In the new process: what makes the call."""
    threading.Thread(target=guard, daemon=True).start()
    return _attempt


def _attempt(call: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str]:
    """A value, or the sentence of an error: errors of any class cross processes as plain text."""
    try:
        return call(*arguments), ""
    except Exception as error:
        return None, sentence_of(error)
