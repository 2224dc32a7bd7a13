"""Checks of one outcome against its own per-target bits."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator

from grb.errors import IntegrityError
from grb.evaluator.measurement import Outcome

# more targets than any test set has; bits of more are not expanded
MAX_TARGETS = 2**27


def packed_bits(text: str, targets: int) -> int:
    """Which targets are correct, as one number of as many bits; the first target is the highest bit."""
    if not 0 <= targets <= MAX_TARGETS:
        raise IntegrityError(f"it has {targets} targets, but at most {MAX_TARGETS} are read")
    size = (targets + 7) // 8
    try:
        packed = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
    except (ValueError, zlib.error) as error:
        raise IntegrityError(f"these are no packed bits: {str(error)[:60]}") from None
    value, padding = int.from_bytes(packed, "big"), -targets % 8
    if len(packed) != size or value & ((1 << padding) - 1):
        raise IntegrityError(f"{len(packed)} bytes do not hold the bits of {targets} targets")
    return value >> padding


def count_bits(text: str) -> int:
    """How many nodes a choice of targets names, whatever the number of those that it was made among."""
    unpack = zlib.decompressobj()
    try:
        packed = unpack.decompress(base64.b64decode(text, validate=True), MAX_TARGETS // 8)
    except (ValueError, zlib.error) as error:
        raise IntegrityError(f"these are no packed bits: {str(error)[:60]}") from None
    if unpack.unconsumed_tail:
        raise IntegrityError(f"its choice of targets is of more than {MAX_TARGETS} nodes")
    return int.from_bytes(packed, "big").bit_count()


def check_outcome(name: str, outcome: Outcome, bits: int, metric: str, clean: tuple[int, int] | None) -> Iterator[str]:
    """Yield a sentence for every number of an outcome that its bits contradict.

    Args:
        name: Difficulty.
        outcome: The outcome.
        bits: Which targets are correct (:func:`packed_bits`).
        metric: The metric that ranks.
        clean: Bits and number of targets of the same victim on the clean graph; None if they are not known.
    """
    targets, right = outcome.targets, bits.bit_count()
    if not targets:
        yield f"it has no {name} targets"
        return
    said = outcome.values.get("accuracy")
    if said is not None and said != right / targets:
        yield f"its accuracy of {name} is {said}, but {right} of {targets} targets are correct: {right / targets}"
    ranked = outcome.values.get(metric, 0.0)
    if not 0 <= ranked <= 1:
        yield f"its {metric} of {name} is {ranked}, but a fraction from 0 to 1 is needed"
    changed = round(outcome.changed * targets)
    if outcome.changed != changed / targets:
        yield f"its changed of {name} is {outcome.changed}, which is no fraction of {targets} targets"
    if outcome.invalid > targets - right:
        yield f"{outcome.invalid} of its {name} targets are invalid, but only {targets - right} are wrong"
    if clean is not None and clean[1] == targets:
        flipped, both = (clean[0] ^ bits).bit_count(), (clean[0] & bits).bit_count()
        if not flipped <= changed <= targets - both:
            yield (
                f"its changed of {name} is {changed} of {targets} targets, but the bits here and on the clean graph "
                f"allow {flipped} to {targets - both}"
            )
