"""The parts of a message's or a result's content, typed. Knows no items.

What a part's `extra` holds is its other fields, `type` among them, so that it can be written back;
a content that was one string has parts without extra.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Final, TypeAlias, final

from tokenwire.core.call import Need
from tokenwire.core.dialogue import Audio, ClientPart, Document, Image, Text
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.plugins.protocols.responses.schema import Json

__all__ = ("AUDIO_TYPES", "Look", "PartReader", "data_url")

LISTED_AT: Final = "input[].content[]"
AUDIO_TYPES: Final = {"mp3": "audio/mpeg", "wav": "audio/wav"}
TEXTS: Final = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
}
KINDS: Final = "input_text, input_image, input_file, input_audio, output_text or refusal"
QUIET: Final = frozenset(("annotations", "detail", "file_id", "logprobs", "type"))
"""Of our own parts, sent back; and what is null or has no effect on a prompt."""

Look: TypeAlias = Callable[[Need], object]

_DATA_URL: Final = re.compile(r"data:([^,;]*)(?:;[^,;]*)*?(;base64)?,")
_BLANK: Final = re.compile(r"\s+")


@final
class PartReader:
    """Reads contents; needs are added to the list it was given."""

    def __init__(self, ignored: Ignored, needs: list[Need], look: Look) -> None:
        """`look`: of a need for a URL the bytes, `...` where they are not there yet."""
        self._ignored = ignored
        self._needs = needs
        self._look = look

    def read(self, content: object, at: str) -> tuple[ClientPart, ...]:
        """The parts; null is none at all, and a string is one part, be it empty."""
        if content is None:
            return ()
        if isinstance(content, str):
            return (Text(content),)
        if not isinstance(content, list):
            raise RequestError(
                f"{at} must be a string or a list of parts", param=at, code="invalid_type"
            )
        return tuple(self._part(part, f"{at}[{k}]") for k, part in enumerate(content))

    def _part(self, part: object, at: str) -> ClientPart:
        if not isinstance(part, dict):
            raise RequestError(f"{at} must be an object", param=at, code="invalid_type")
        kind = part.get("type")
        if isinstance(kind, str) and (field := TEXTS.get(kind)):
            return Text(_string(part, field, at), extra=self._extra(part, field))
        match kind:
            case "input_image":
                return self._image(part, at)
            case "input_file":
                return self._file(part, at)
            case "input_audio":
                return self._audio(part, at)
        what = "is missing: it" if kind is None else f"is {str(kind)[:64]!r}, and"
        raise RequestError(
            f"{at}.type {what} must be {KINDS}", param=f"{at}.type", code="unknown_part"
        )

    def _extra(self, part: Json, *used: str) -> Json:
        extra = {key: value for key, value in part.items() if key not in used}
        if len(extra) > 1:
            self._ignored.unknown(extra, QUIET, LISTED_AT)
        return extra

    def _image(self, part: Json, at: str) -> Image:
        _no_file_ids(part, at, "image_url")
        url = _string(part, "image_url", at)
        detail = part.get("detail")
        if not isinstance(detail, str | None):
            raise RequestError(f"{at}.detail must be a string", param=f"{at}.detail")
        used = ("image_url",) if detail is None else ("image_url", "detail")
        extra = self._extra(part, *used)
        if url.startswith("data:"):
            media_type, data = _read_data_url(url, f"{at}.image_url")
            if data_url(media_type, data) != url:
                extra["image_url"] = url
            return Image(data=data, media_type=media_type, detail=detail, extra=extra)
        fetched = self._fetched(url, f"{at}.image_url")
        if fetched is None:
            return Image(url=url, detail=detail, extra=extra)
        return Image(data=fetched, detail=detail, extra=extra | {"image_url": url})

    def _file(self, part: Json, at: str) -> Document:
        _no_file_ids(part, at, "file_data")
        name = part.get("filename")
        if not isinstance(name, str | None):
            raise RequestError(f"{at}.filename must be a string", param=f"{at}.filename")
        used = [key for key in ("file_data", "file_url", "filename") if part.get(key) is not None]
        extra = self._extra(part, *used)
        if part.get("file_url") is not None and part.get("file_data") is None:
            url = _string(part, "file_url", at)
            fetched = self._fetched(url, f"{at}.file_url")
            if fetched is None:
                return Document(url=url, name=name, extra=extra)
            return Document(data=fetched, name=name, extra=extra | {"file_url": url})
        text = _string(part, "file_data", at)
        if text.startswith("data:"):
            media_type, data = _read_data_url(text, f"{at}.file_data")
        else:
            media_type, data = None, _base64(text, f"{at}.file_data")
        again = b64encode(data).decode() if media_type is None else data_url(media_type, data)
        if again != text:
            extra["file_data"] = text
        return Document(data=data, media_type=media_type, name=name, extra=extra)

    def _audio(self, part: Json, at: str) -> Audio:
        inner = part.get("input_audio")
        if not isinstance(inner, dict):
            raise RequestError(f"{at}.input_audio must be an object", param=f"{at}.input_audio")
        data, format_ = (_string(inner, key, f"{at}.input_audio") for key in ("data", "format"))
        extra = self._extra(part, "input_audio")
        decoded = _base64(data, f"{at}.input_audio.data")
        if b64encode(decoded).decode() != data or len(inner) > 2:
            extra["input_audio"] = inner
        media_type = AUDIO_TYPES.get(format_, f"audio/{format_}")
        return Audio(data=decoded, media_type=media_type, extra=extra)

    def _fetched(self, url: str, at: str) -> bytes | None:
        """None: it is needed."""
        _check_url(url, at)
        need = Need("url", url)
        found = self._look(need)
        if isinstance(found, bytes):
            return found
        self._needs.append(need)
        return None


def _string(part: Json, field: str, at: str) -> str:
    value = part.get(field)
    if not isinstance(value, str):
        raise RequestError(
            f"{at}.{field} must be a string", param=f"{at}.{field}", code="invalid_type"
        )
    return value


def _no_file_ids(part: Json, at: str, instead: str) -> None:
    if part.get("file_id") is not None:
        raise RequestError(
            f"{at}.file_id names an uploaded file, and this server keeps none: send {instead}",
            param=f"{at}.file_id",
            code="unsupported_field",
        )


def _check_url(url: str, at: str) -> None:
    if not url.lower().startswith(("http://", "https://")):
        raise RequestError(f"{at} must be an http, https or data URL", param=at, code="invalid_url")


def data_url(media_type: str | None, data: bytes) -> str:
    return f"data:{media_type or ''};base64,{b64encode(data).decode()}"


def _read_data_url(url: str, at: str) -> tuple[str | None, bytes]:
    """RFC 2397, base64 only."""
    head = _DATA_URL.match(url)
    if head is None or head.group(2) is None:
        raise RequestError(
            f"{at} must have the form data:TYPE;base64,DATA", param=at, code="invalid_url"
        )
    return head.group(1), _base64(url[head.end() :], at)


def _base64(text: str, at: str) -> bytes:
    try:
        return b64decode(_BLANK.sub("", text), validate=True)
    except (Base64Error, ValueError):
        raise RequestError(f"{at} is not valid base64", param=at, code="invalid_base64") from None
