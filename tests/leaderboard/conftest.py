from __future__ import annotations

from browsing import browser, open_page  # noqa: F401
