"""How much memory JSON takes when it is read, counted from its bytes before anything is parsed."""

from __future__ import annotations

from dataclasses import dataclass, field

# bytes of memory per bracket, comma, colon and quote: an upper bound of what lists, mappings, numbers and short texts take
_COSTS = {b"[": 100, b"{": 200, b",": 36, b":": 64, b'"': 28}
# so much may be taken by any file, and beyond it ten times the file
FREE_MEMORY = 3 * 2**20
MAX_MEMORY_RATIO = 10


@dataclass
class JsonMemory:
    r"""Bytes that reading JSON takes: the file, its text and its values.

    A file with any letter beyond ASCII takes four bytes per letter, and so may a text with escapes once it is read. No text
    of JSON goes over the end of a line, so that escapes count for their lines alone.

    >>> count = JsonMemory()
    >>> count.add(b"[1, 2]")
    >>> count.bytes
    154
    >>> count.add(b'\n"\\u00e9"')
    >>> count.escaped
    8
    """

    size: int = 0
    tokens: int = 0
    wide: bool = False
    escaped: int = 0
    # of the line that has not ended yet
    _open: int = field(default=0, repr=False)
    _open_escaped: bool = field(default=False, repr=False)

    def add(self, block: bytes) -> None:
        """Count the next bytes of a file."""
        self.size += len(block)
        self.tokens += sum(cost * block.count(token) for token, cost in _COSTS.items())
        self.wide = self.wide or not block.isascii()
        self._add_escaped(block)

    def _add_escaped(self, block: bytes) -> None:
        """Count the lines with escapes; the first and the last one may go on in other blocks."""
        first = block.find(b"\n")
        start = len(block) if first < 0 else first
        escaped = self._open_escaped or block.find(b"\\", 0, start) >= 0
        if escaped:
            self.escaped += start + (0 if self._open_escaped else self._open)
        self._open, self._open_escaped = self._open + start, escaped
        if first < 0:
            return
        found = block.find(b"\\", start)
        while found >= 0:
            end = block.find(b"\n", found)
            start = len(block) if end < 0 else end
            self.escaped += start - block.rfind(b"\n", 0, found) - 1
            found = block.find(b"\\", start)
        last = block.rfind(b"\n") + 1
        self._open, self._open_escaped = len(block) - last, block.find(b"\\", last) >= 0

    @property
    def bytes(self) -> int:
        """Bytes of file, text and values together."""
        return self.tokens + self.size * (9 if self.wide else 3) + (0 if self.wide else 6 * self.escaped)


def memory_limit(file: int) -> int:
    """Return how much memory the content of a file of this size in bytes may take."""
    return max(FREE_MEMORY, MAX_MEMORY_RATIO * file)


def check_memory(data: bytes) -> None:
    """Refuse JSON that takes more than ten times its size in memory, and more than any record of ours."""
    count = JsonMemory()
    count.add(data)
    if count.bytes > memory_limit(len(data)):
        raise ValueError(f"its {len(data)} bytes would take {count.bytes} bytes of memory")
