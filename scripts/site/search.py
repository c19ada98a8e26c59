"""The words of the site for its search.

They are a script that sets a table, since a page from a file may not fetch one.
"""

import json
import re

WORDS_MAX = 1200


class Search:
    def __init__(self):
        self.rows, self.known = [], set()

    def add(self, title, url, section, words, symbol=False):
        if url in self.known:
            return
        self.known.add(url)
        words = re.sub(r"\s+", " ", words).strip()[:WORDS_MAX]
        self.rows.append([title, url, section, words, 1 if symbol else 0])

    def add_document(self, document, section):
        for heading in document.headings:
            url = document.page if heading.level == 1 else f"{document.page}#{heading.anchor}"
            title = heading.text if heading.level == 1 else f"{document.title}: {heading.text}"
            self.add(title, url, section, heading.said)

    def text(self):
        rows = ",\n".join(
            json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in self.rows
        )
        return f"window.troupe_words = [\n{rows}\n];\n"
