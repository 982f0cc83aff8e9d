"""Settings of the template `harmony`. Cheap to import: listings need them."""

from __future__ import annotations

from msgspec import Struct

__all__ = ("TemplateSettings",)


class TemplateSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What the system message says."""

    identity: str = "You are ChatGPT, a large language model trained by OpenAI."
    knowledge_cutoff: str = "2024-06"
    effort: str = "medium"
    """Where a request names none."""
