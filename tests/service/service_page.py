"""The page of the service in a browser, for tests."""

from __future__ import annotations

from typing import Any

LONG = 600_000  # milliseconds: only against hanging


class Page:
    """An open page that remembers everything it should not do."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url = url
        self.context = browser.new_context(accept_downloads=True, **options)
        self.context.set_default_timeout(LONG)
        self.page = self.context.new_page()
        self.trouble: list[str] = []
        # Chromium notes every answer of 400 and more on the console: those are meant here
        self.page.on("console", lambda m: "status of 4" in m.text or self.trouble.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.trouble.append(f"error: {e}"))
        self.page.on("dialog", lambda d: (self.trouble.append(f"dialog: {d.message}"), d.dismiss()))
        own = ("blob:", "data:", "file:" if url.startswith("file:") else "/".join(url.split("/")[:3]))
        self.page.on("request", lambda r: r.url.startswith(own) or self.trouble.append(f"request: {r.url}"))
        self.page.goto(url)

    def text(self, selector: str) -> str:
        text: str = self.page.locator(selector).first.inner_text()
        return text

    def close(self) -> None:
        self.context.close()
        assert self.trouble == []
