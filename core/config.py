"""The configuration as values. Knows no files: config_file.py reads them into these.

Argues its length: one table of every key, with its meaning under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from tokenwire.core.secrets import Secret

__all__ = (
    "CacheConfig",
    "Config",
    "CorsConfig",
    "MediaConfig",
    "ModelConfig",
    "ParseConfig",
    "PluginUse",
    "ServerConfig",
)

NOTHING: Mapping[str, object] = {}


class PluginUse(Struct, frozen=True):
    """A plugin by name, with the settings given for this use of it."""

    plugin: str
    settings: Mapping[str, object] = NOTHING


class CorsConfig(Struct, frozen=True):
    """Cross-origin requests. Empty `origins`: none are answered."""

    origins: tuple[str, ...] = ()
    """"*" allows any."""
    headers: tuple[str, ...] = ("*",)
    max_age: int = 600
    """Seconds."""


class MediaConfig(Struct, frozen=True):
    """Pictures, recordings and files that requests name by URL."""

    fetch: bool = True
    """Whether any is fetched; else clients must send the bytes."""
    private: bool = False
    """Also from private, loopback and link-local addresses."""
    max_bytes: int = 32 * 1024 * 1024
    """Of one file."""
    max_files: int = 32
    """Of one request."""
    timeout: float = 20.0
    """Seconds for one file, redirects included."""
    redirects: int = 3
    """How many are followed."""


class ServerConfig(Struct, frozen=True):
    """`server:`"""

    host: str = "127.0.0.1"
    port: int = 8080
    health_check: str | None = None
    """Another path for /health."""
    http: Literal["granian", "uvicorn"] = "granian"
    workers: int = 1
    keys: tuple[Secret, ...] = ()
    """Secrets for signatures and MACs: the first signs, all verify."""
    request_timeout: float = 600.0
    """Seconds that a unary call may take."""
    keepalive: float = 10.0
    """Seconds of silence after which a stream gets a comment."""
    max_body: int = 32 * 1024 * 1024
    """Bytes of a request's body."""
    max_background: int = 256
    """Answers that a worker makes at a time while nobody need listen."""
    flush_interval: float = 0.005
    """Seconds between two writes to one stream; what comes sooner is written together."""
    drain_timeout: float = 30.0
    """Seconds that running calls get at shutdown."""
    debug: bool = False
    """Keeps recent prompts for GET /debug/prompts/{id}."""
    allow_mock_public: bool = False
    cors: CorsConfig = CorsConfig()
    media: MediaConfig = MediaConfig()


class CacheConfig(Struct, frozen=True):
    """`cache:`"""

    type: str = "memory"
    """A store plugin's name."""
    settings: Mapping[str, object] = NOTHING
    """Everything else under `cache:` that the store plugin's settings know (endpoint, ...)."""
    answers: bool = False
    """Answer deterministic calls from the store."""
    answers_ttl: float = 3600.0
    """Seconds."""
    history: bool = True
    """Keep the exact ids of conversations, so that their next turn goes on from them."""
    history_ttl: float = 3600.0
    """Seconds."""
    responses_ttl: float = 2_592_000.0
    """Seconds that answers and conversations are kept which clients may ask for again."""


class ParseConfig(Struct, frozen=True):
    """`models.parse`: how tolerant to be with requests and histories."""

    unknown_fields: Literal["keep", "warn", "refuse"] = "keep"
    merge_system: Literal["auto", "never", "front"] = "auto"
    """Several system turns: as the template allows, as sent, or joined at the front."""
    prompt_specials: Literal["text", "tokens"] = "text"
    """What spellings of special tokens in a prompt of text are, where no template makes it."""
    media: Literal["refuse", "describe"] = "refuse"
    """Pictures and files for a model that takes none: 400, or one line of words in their place."""
    roles: Mapping[str, str] = {}
    """Renames roles for the template, as {"developer": "system"}."""


class ModelConfig(Struct, frozen=True):
    """One entry of `models:`"""

    name: str
    engine: PluginUse
    tokenizer: PluginUse | None = None
    """None: the checkpoint's tokenizer.json."""
    dialect: str = "auto"
    reasoning: str = "auto"
    chat_template: PluginUse | None = None
    parser: PluginUse | None = None
    checkpoint: str | None = None
    """The model's folder, or a GGUF file; default: the tokenizer's folder."""
    aliases: tuple[str, ...] = ()
    revision: str = ""
    context_length: int | None = None
    """None: the checkpoint's."""
    trust_tokenizer: bool = False
    """Take an engine whose fingerprints are unknown."""
    parse: ParseConfig = ParseConfig()


class Config(Struct, frozen=True):
    """All of it."""

    server: ServerConfig = ServerConfig()
    models: tuple[ModelConfig, ...] = ()
    cache: CacheConfig = CacheConfig()
    enable_mock: bool | None = None
    plugins: Mapping[str, Mapping[str, object]] = {}
    """Settings by plugin name, for plugins that serve the whole process."""
    replaces: Mapping[str, str] = {}
    """"KIND.NAME" -> owner whose implementation wins over another's of the same name."""
    warnings: tuple[str, ...] = ()
    """What reading the configuration had to assume; printed at start."""
