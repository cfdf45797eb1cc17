"""Studies as the service sends and accepts them, for type checkers: each is a plain dictionary."""

from __future__ import annotations

from typing import Literal, TypedDict

License = Literal["CC-BY-4.0", "CC0-1.0"]


class _ModelRequired(TypedDict):
    name: str
    runtime: str


class Model(_ModelRequired, total=False):
    revision: str | None


class ContextMessage(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


class Settings(TypedDict):
    temperature: float
    seed: int
    maxTokens: int
    thinking: Literal["on", "off", "default"]


class _EntryRequired(TypedDict):
    id: str
    kind: Literal["prompt", "result", "note", "error"]
    title: str


class Entry(_EntryRequired, total=False):
    parent: str | None
    model: str
    system: str
    context: list[ContextMessage]
    prompt: str
    answer: str
    thinking: str
    note: str
    settings: Settings
    finishReason: str | None


class StudyPackage(TypedDict):
    schemaVersion: Literal[1]
    title: str
    question: str
    hypothesis: str
    method: str
    finding: str
    limitations: str
    license: License
    model: Model
    omissions: list[str]
    entries: list[Entry]


class _AuthorRequired(TypedDict):
    name: str


class Author(_AuthorRequired, total=False):
    handle: str
    """Names the account: unique, and it never changes."""


class StudySummary(TypedDict):
    id: str
    title: str
    question: str
    """Its first 300 characters."""
    author: Author
    model: Model
    license: str
    published_at: str
    version: int
    entry_count: int
    upvotes: int
    comment_count: int


class _StudyPageRequired(TypedDict):
    items: list[StudySummary]
    total: int
    limit: int
    offset: int
    next_offset: int | None
    """None at the end."""


class StudyPage(_StudyPageRequired, total=False):
    total_is_exact: bool
    """False where more match than `total`."""


class StudyEnvelope(TypedDict):
    id: str
    visibility: Literal["private_draft", "published"]
    version: int
    """0 for a draft."""
    author: Author
    created_at: str
    published_at: str | None
    url: str
    package_sha256: str
    package: StudyPackage


class DraftCreated(TypedDict):
    id: str
    review_url: str
    package_sha256: str
    expires_at: None
