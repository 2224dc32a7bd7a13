"""How much memory JSON takes when it is read, counted from its bytes before anything is parsed."""

from __future__ import annotations

from dataclasses import dataclass, field

# bytes of memory per bracket, comma and quote: an upper bound of what lists, mappings, numbers and short texts take
_COSTS = {b"[": 100, b"{": 200, b",": 36, b'"': 28}
# so much may be taken by any file, and beyond it ten times the file
FREE_MEMORY = 3 * 2**20
MAX_MEMORY_RATIO = 10


@dataclass
class JsonMemory:
    """Bytes that reading JSON takes: the file, its text and its values.

    Text with any letter beyond ASCII takes four bytes per letter, and so may text with escapes once it is read.

    >>> count = JsonMemory()
    >>> count.add(b"[1, 2]")
    >>> count.bytes
    154
    """

    size: int = 0
    tokens: int = 0
    wide: bool = field(default=False)
    escaped: bool = field(default=False)

    def add(self, block: bytes) -> None:
        """Count the next bytes of a file."""
        self.size += len(block)
        self.tokens += sum(cost * block.count(token) for token, cost in _COSTS.items())
        self.wide = self.wide or not block.isascii()
        self.escaped = self.escaped or b"\\" in block

    @property
    def bytes(self) -> int:
        """Bytes of file, text and values together."""
        return self.tokens + self.size * (1 + (4 if self.wide else 1) + (4 if self.wide or self.escaped else 1))


def memory_limit(file: int) -> int:
    """Return how much memory the content of a file of so many bytes may take."""
    return max(FREE_MEMORY, MAX_MEMORY_RATIO * file)


def check_memory(data: bytes) -> None:
    """Refuse JSON that takes more than ten times its size in memory, and more than any record of ours."""
    count = JsonMemory()
    count.add(data)
    if count.bytes > memory_limit(len(data)):
        raise ValueError(f"its {len(data)} bytes would take {count.bytes} bytes of memory")
