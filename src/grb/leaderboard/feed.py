"""Feeds of what changes on a site: JSON Feed 1.1 and Atom (RFC 4287)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from grb.leaderboard.changes import Change
from grb.leaderboard.text import sanitize

JSON_FILE, ATOM_FILE = "feed.json", "feed.atom"
MOST = 50
# of feeds that have nothing to tell yet
BEGINNING = "1970-01-01"


def json_feed(changes: Sequence[Change], *, title: str, url: str = "") -> str:
    """The newest changes as JSON Feed; addresses are relative unless ``url`` is the site's."""
    items = [
        {
            "id": _name(change),
            "url": url + change.file,
            "title": change.board,
            "content_text": change.text,
            "date_published": f"{change.date}T00:00:00Z",
        }
        for change in changes[:MOST]
    ]
    head = {"version": "https://jsonfeed.org/version/1.1", "title": sanitize(title, 120)}
    site = {"home_page_url": url + "index.html", "feed_url": url + JSON_FILE} if url else {}
    return json.dumps({**head, **site, "items": items}, indent=1, ensure_ascii=False) + "\n"


def atom_feed(changes: Sequence[Change], *, title: str, url: str = "") -> str:
    """The newest changes as Atom."""
    shown = changes[:MOST]
    updated = max((change.date for change in shown), default=BEGINNING)
    entries = [
        f"""<entry>
<id>{_name(change)}</id>
<title>{escape(f"{change.board}: {change.text}")}</title>
<link href={quoteattr(url + change.file)}/>
<updated>{change.date}T00:00:00Z</updated>
<content type="text">{escape(change.text)}</content>
</entry>
"""
        for change in shown
    ]
    own = f'<link rel="self" href={quoteattr(url + ATOM_FILE)}/>\n' if url else ""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>{uuid.uuid5(uuid.NAMESPACE_URL, url or title).urn}</id>
<title>{escape(sanitize(title, 120))}</title>
<author><name>grb</name></author>
<link href={quoteattr(url + "index.html")}/>
{own}<updated>{updated}T00:00:00Z</updated>
{"".join(entries)}</feed>
"""


def _name(change: Change) -> str:
    """An identifier that stays the same when a site moves."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{change.date} {change.file} {change.text}").urn
