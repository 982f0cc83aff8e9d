"""Content blocks to dialogue parts, one at a time. Knows no turns and no settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar, cast, final

from msgspec import Struct

from tokenwire.core.call import Need
from tokenwire.core.dialogue import (
    ClientPart,
    Document,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import check_depth, to_struct
from tokenwire.core.signing import Keyring
from tokenwire.plugins.protocols.messages import schema
from tokenwire.plugins.protocols.messages.raw import RawFields
from tokenwire.plugins.protocols.messages.signature import is_ours
from tokenwire.plugins.protocols.messages.sources import (
    SOURCES,
    bytes_of,
    wrong,
    wrong_source,
)

__all__ = ("SEARCH_RESULT", "TOOL_REFERENCE", "BlockReader", "Place")

SEARCH_RESULT: Final = "search_result"
"""Under this key a document keeps the search result that it was."""
TOOL_REFERENCE: Final = "tool_reference"
"""Under this key a text keeps the reference that it was."""

T = TypeVar("T", bound=Struct)
Block = Mapping[str, object]

COMMON: Final = frozenset(("type", "cache_control"))
INNER: Final = frozenset(("type",))
ONLY_IN: Final = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}


class Place(Struct, frozen=True, gc=False):
    """Where a block stands: `path` names its list. `spot` is the whole with `[]` for indexes."""

    path: str
    index: int
    spot: str
    message: int = -1
    """Index in `messages`; -1: in `system`, or inside another block."""

    @property
    def at(self) -> str:
        return f"{self.path}[{self.index}]"


@final
class BlockReader:
    """Reads the blocks of one request; collects what they need and what nobody uses."""

    __slots__ = ("_ignored", "_keys", "_names", "_raw", "_readers", "needs")

    def __init__(self, keys: Keyring, ignored: Ignored, raw: RawFields) -> None:
        self._keys = keys
        self._ignored = ignored
        self._raw = raw
        self._names: dict[str, str | None] = {}
        self.needs: dict[Need, None] = {}
        self._readers: dict[str, Callable[[Block, Place], Part]] = {
            "text": self._text,
            "image": self._image,
            "document": self._document,
            "search_result": self._search_result,
            "tool_reference": self._tool_reference,
            "thinking": self._thinking,
            "redacted_thinking": self._redacted,
            "tool_use": self._tool_use,
            "tool_result": self._tool_result,
        }

    def read(self, block: Block, role: str, place: Place) -> Part:
        """`role` is the message's; "" inside another block."""
        kind = block.get("type")
        if not isinstance(kind, str):
            raise wrong(f"{place.at}.type", "must be a string that names the kind of block")
        reader = self._readers.get(kind)
        if reader is None:
            self._ignored.add(f"{place.spot}[type={kind}]")
            self._foreign_use(kind, block, role)
            return Opaque(kind, block)
        if role == "system" and kind != "text":
            raise wrong(f"{place.at}.type", f"must be text in a system message, not {kind[:64]}")
        if ONLY_IN.get(kind, role) != role:
            raise wrong(
                f"{place.at}.type",
                f"{kind} may only stand in the content of a message of role {ONLY_IN[kind]}",
            )
        return reader(block, place)

    def _text(self, block: Block, place: Place) -> Text:
        text = block.get("text")
        if not isinstance(text, str):
            text = to_struct(block, schema.TextParam, at=place.at).text
        if len(block) == 2:
            return Text(text)
        return Text(text, self._extra(block, ("text",), place))

    def _image(self, block: Block, place: Place) -> Image:
        source = to_struct(block, schema.ImageParam, at=place.at).source
        extra = self._extra(block, ("source",), place) | self._odd_source(source, place)
        match self._source(source, place):
            case schema.Base64Source(data, media_type):
                return Image(data=bytes_of(data, place.at), media_type=media_type, extra=extra)
            case schema.UrlSource(url):
                return Image(url=self._url(url, place), extra=extra)
            case _:
                raise wrong_source(source, place.at, "base64 or url")

    def _document(self, block: Block, place: Place) -> Document:
        given = to_struct(block, schema.DocumentParam, at=place.at)
        extra = self._extra(block, ("source", "title"), place)
        extra |= self._odd_source(given.source, place)
        title = given.title
        match self._source(given.source, place):
            case schema.TextSource(data, media_type):
                return Document(text=data, media_type=media_type, title=title, extra=extra)
            case schema.Base64Source(data, media_type):
                binary = bytes_of(data, place.at)
                return Document(data=binary, media_type=media_type, title=title, extra=extra)
            case schema.UrlSource(url):
                return Document(url=self._url(url, place), title=title, extra=extra)
            case schema.ContentSource(content):
                text = content if isinstance(content, str) else self._content(content, place)
                whole = {**extra, "source": given.source}
                return Document(text=text, title=title, extra=whole)
            case _:
                raise wrong_source(given.source, place.at, "base64, text, url or content")

    def _search_result(self, block: Block, place: Place) -> Document:
        """What was found reaches the model as a document; the block itself is kept whole."""
        given = to_struct(block, schema.SearchResultParam, at=place.at)
        self._extra(block, schema.SearchResultParam.__struct_fields__, place)
        text = self._joined(given.content, f"{place.at}.content", f"{place.spot}.content[]")
        kept = {key: value for key, value in block.items() if key != "cache_control"}
        return Document(
            text=text, title=given.title, name=given.source, extra={SEARCH_RESULT: kept}
        )

    def _tool_reference(self, block: Block, place: Place) -> Text:
        """A tool that a search has found reaches the model by its name; the block is kept whole."""
        name = to_struct(block, schema.ToolReferenceParam, at=place.at).tool_name
        self._extra(block, ("tool_name",), place)
        # Why: where a turn's blocks are written back, their markers are put to them again.
        quiet = () if place.message < 0 else ("cache_control",)
        kept = {key: value for key, value in block.items() if key not in quiet}
        return Text(f"[tool found: {name}]", {TOOL_REFERENCE: kept})

    def _joined(self, content: list[schema.Json], path: str, spot: str) -> str:
        """The text of what is given as blocks; pictures among them are listed as ignored."""
        texts = []
        for k, block in enumerate(content):
            inner = Place(path, k, spot)
            part = self.read(block, "", inner)
            if isinstance(part, Text):
                texts.append(part.text)
            elif not isinstance(part, Opaque):
                self._ignored.add(f"{inner.spot}[type={block['type']}]")
        return "\n".join(texts)

    def _content(self, content: list[schema.Json], place: Place) -> str:
        at, spot = f"{place.at}.source.content", f"{place.spot}.source.content[]"
        return self._joined(content, at, spot)

    def _source(self, source: schema.Json, place: Place) -> Struct | None:
        kind = source.get("type")
        reader = SOURCES.get(kind) if isinstance(kind, str) else None
        if reader is None:
            return None
        return to_struct(source, reader, at=f"{place.at}.source")

    def _odd_source(self, source: schema.Json, place: Place) -> dict[str, object]:
        """A source with fields that nobody knows is kept whole."""
        kind = source.get("type")
        reader = SOURCES.get(kind) if isinstance(kind, str) else None
        if reader is None:
            return {}
        known = frozenset(("type", *reader.__struct_fields__))
        unknown = self._ignored.unknown(source, known, f"{place.spot}.source")
        return {"source": source} if unknown else {}

    def _url(self, url: str, place: Place) -> str:
        if not url.startswith(("http://", "https://")):
            raise wrong(f"{place.at}.source.url", "must begin with http:// or https://")
        self.needs[Need("url", url)] = None
        return url

    def _thinking(self, block: Block, place: Place) -> Reasoning:
        given = to_struct(block, schema.ThinkingParam, at=place.at)
        signature = given.signature
        if signature and not given.thinking:
            # Thinking that was left out: its text is sealed in the signature.
            self.needs[Need("sealed", signature)] = None
        elif signature is None or not is_ours(self._keys, given.thinking, place.index, signature):
            self._ignored.add(f"{place.spot}.signature")
        extra = self._extra(block, ("thinking", "signature"), place)
        return Reasoning(given.thinking, signature=signature, extra=extra)

    def _redacted(self, block: Block, place: Place) -> Reasoning:
        given = to_struct(block, schema.RedactedParam, at=place.at)
        self.needs[Need("sealed", given.data)] = None
        return Reasoning("", redacted=given.data, extra=self._extra(block, ("data",), place))

    def _tool_use(self, block: Block, place: Place) -> ToolCall:
        given = to_struct(block, schema.ToolUseParam, at=place.at)
        extra = self._extra(block, ("id", "name", "input"), place)
        self._names[given.id] = given.name
        arguments = given.input
        if not isinstance(arguments, dict | str):
            extra = {**extra, "input": arguments}
        if isinstance(arguments, dict):
            arguments = self._raw.tool_input(place.message, place.index)
        else:
            # Why: what another model wrote is tolerated, and listed (a history must not be lost).
            self._ignored.add(f"{place.spot}.input")
            if arguments is None:
                arguments = "{}"
            elif isinstance(arguments, str):
                check_depth(arguments, param=f"{place.at}.input")
            else:
                arguments = self._raw.tool_input(place.message, place.index)
        return ToolCall(given.id, given.name, arguments, extra=extra)

    def _foreign_use(self, kind: str, block: Block, role: str) -> None:
        """A call that another server ran (`server_tool_use`, ...): a plain result may answer it."""
        id_, name = block.get("id"), block.get("name")
        if role == "assistant" and kind.endswith("_tool_use") and isinstance(id_, str):
            self._names[id_] = name if isinstance(name, str) else None

    def _tool_result(self, block: Block, place: Place) -> ToolResult:
        given = to_struct(block, schema.ToolResultParam, at=place.at)
        if given.tool_use_id not in self._names:
            raise RequestError(
                f"{place.at}.tool_use_id {given.tool_use_id[:64]!r} answers no earlier call: a"
                " tool_use block of an assistant message before it must hold that id",
                param=f"{place.at}.tool_use_id",
            )
        if given.is_error:
            self._ignored.add(f"{place.spot}.is_error")
        content = given.content
        if isinstance(content, str):
            parts: tuple[ClientPart, ...] = (Text(content),)
        else:
            path, spot = f"{place.at}.content", f"{place.spot}.content[]"
            inner = [
                self.read(block, "", Place(path, k, spot)) for k, block in enumerate(content or ())
            ]
            parts = cast(tuple[ClientPart, ...], tuple(inner))
        extra = self._extra(block, ("tool_use_id", "content", "is_error"), place)
        if (
            len(parts) == 1
            and not isinstance(content, str)
            and parts[0] == Text(getattr(parts[0], "text", None) or "")
        ):
            extra["content"] = content  # Which would be written as text.
        return ToolResult(
            given.tool_use_id,
            parts,
            is_error=bool(given.is_error),
            name=self._names[given.tool_use_id],
            extra=extra,
        )

    def _extra(self, block: Block, known: tuple[str, ...], place: Place) -> dict[str, object]:
        is_inner = place.message < 0 and place.path != "system"
        # Why: only blocks of a turn can be told from their neighbours in a prompt.
        return self._ignored.unknown(block, (INNER if is_inner else COMMON) | {*known}, place.spot)
