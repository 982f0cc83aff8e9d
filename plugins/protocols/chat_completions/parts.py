"""The parts of a message's content, typed: text, pictures, recordings, files. Knows no messages."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Final

from tokenwire.core.dialogue import Audio, ClientPart, Document, Image, Reasoning, Text
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import to_struct
from tokenwire.plugins.protocols.chat_completions.schema import FileRef, ImageUrl, InputAudio

__all__ = ("read_content", "read_said")

LISTED_AT: Final = "messages[].content[]"
AUDIO_TYPES: Final = {"mp3": "audio/mpeg", "wav": "audio/wav"}
IMAGE: Final = frozenset(ImageUrl.__struct_fields__)
AUDIO: Final = frozenset(InputAudio.__struct_fields__)
FILE: Final = frozenset(FileRef.__struct_fields__)
KINDS: Final = "text, image_url, input_audio, file or refusal"

_DATA_URL: Final = re.compile(r"data:([^,;]*)(?:;[^,;]*)*?(;base64)?,")
_BLANK: Final = re.compile(r"\s+")


def read_content(
    content: str | list[dict[str, object]] | None, at: str, ignored: Ignored
) -> tuple[ClientPart, ...]:
    """The parts of `content`; null is none at all, and a string is one part, be it empty."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_part(part, f"{at}[{k}]", ignored) for k, part in enumerate(content))


def read_said(
    content: list[dict[str, object]], at: str, ignored: Ignored
) -> tuple[ClientPart | Reasoning, ...]:
    """Of an assistant's content, in which reasoning may stand as other APIs and clients write it:
    `thinking` as text or as parts of text, `reasoning` as text."""
    return tuple(
        _thought(part, f"{at}[{k}]", ignored)
        if part.get("type") in ("thinking", "reasoning")
        else _part(part, f"{at}[{k}]", ignored)
        for k, part in enumerate(content)
    )


def _thought(part: dict[str, object], at: str, ignored: Ignored) -> Reasoning:
    field = next((name for name in ("thinking", "reasoning", "text") if name in part), "thinking")
    inner = part.get(field)
    if isinstance(inner, list):
        pieces = [each if isinstance(each, dict) else {} for each in inner]
        text = "".join(_string(each, "text", f"{at}.{field}[{k}]") for k, each in enumerate(pieces))
    else:
        text = _string(part, field, at)
    signature = part.get("signature")
    known = {"type", field, "signature"}
    extra = ignored.unknown(part, known, LISTED_AT) if len(part) > 2 else {}
    return Reasoning(text, signature if isinstance(signature, str) else None, extra=extra)


def _part(part: dict[str, object], at: str, ignored: Ignored) -> ClientPart:
    kind = part.get("type")
    match kind:
        case "text" | "input_text" | "output_text":  # Why the others: parts of the Responses API.
            return Text(_string(part, "text", at), extra=_extra(part, "text", ignored))
        case "refusal":
            return Text(_string(part, "refusal", at), extra=_extra(part, "refusal", ignored))
        case "image_url":
            return _image(part, f"{at}.image_url", _whole(part, "image_url", IMAGE, ignored))
        case "input_audio":
            return _audio(part, f"{at}.input_audio", _whole(part, "input_audio", AUDIO, ignored))
        case "file":
            return _file(part, f"{at}.file", _whole(part, "file", FILE, ignored))
        case None:
            raise RequestError(
                f"{at}.type is missing: it must be {KINDS}",
                param=f"{at}.type",
                code="missing_field",
            )
        case _:
            raise RequestError(
                f"{at}.type must be {KINDS}, not {str(kind)[:64]!r}",
                param=f"{at}.type",
                code="unknown_part",
            )


def _extra(part: dict[str, object], field: str, ignored: Ignored) -> dict[str, object]:
    if len(part) == 2:
        return {}
    return ignored.unknown(part, {"type", field}, LISTED_AT)


def _whole(
    part: dict[str, object], field: str, known: frozenset[str], ignored: Ignored
) -> dict[str, object]:
    """The unknown fields of a part; an object in it with such fields, or one that is spelled in
    another way, is kept whole."""
    extra = _extra(part, field, ignored)
    inner = part.get(field)
    if (
        isinstance(inner, dict) and ignored.unknown(inner, known, f"{LISTED_AT}.{field}")
    ) or isinstance(inner, str):
        extra = {**extra, field: inner}
    return extra


def _string(part: dict[str, object], field: str, at: str) -> str:
    value = part.get(field)
    if not isinstance(value, str):
        raise RequestError(
            f"{at}.{field} must be a string", param=f"{at}.{field}", code="invalid_type"
        )
    return value


def _image(part: dict[str, object], at: str, extra: dict[str, object]) -> Image:
    given = part.get("image_url")
    # Why: several clients send the URL itself.
    url = ImageUrl(given) if isinstance(given, str) and given else to_struct(given, ImageUrl, at=at)
    if url.url.startswith("data:"):
        media_type, data = _data_url(url.url, f"{at}.url")
        return Image(data=data, media_type=media_type, detail=url.detail, extra=extra)
    if not url.url.lower().startswith(("http://", "https://")):
        raise RequestError(
            f"{at}.url must be an http, https or data URL", param=f"{at}.url", code="invalid_url"
        )
    return Image(url=url.url, detail=url.detail, extra=extra)


def _audio(part: dict[str, object], at: str, extra: dict[str, object]) -> Audio:
    audio = to_struct(part.get("input_audio"), InputAudio, at=at)
    media_type = AUDIO_TYPES.get(audio.format, f"audio/{audio.format}")
    return Audio(data=_base64(audio.data, f"{at}.data"), media_type=media_type, extra=extra)


def _file(part: dict[str, object], at: str, extra: dict[str, object]) -> Document:
    file = to_struct(part.get("file"), FileRef, at=at)
    if file.file_id is not None:
        raise RequestError(
            f"{at}.file_id names an uploaded file, and this server keeps none: send file_data",
            param=f"{at}.file_id",
            code="unsupported_field",
        )
    if not file.file_data:
        raise RequestError(
            f"{at}.file_data is missing", param=f"{at}.file_data", code="missing_field"
        )
    if file.file_data.startswith("data:"):
        media_type, data = _data_url(file.file_data, f"{at}.file_data")
    else:
        media_type, data = None, _base64(file.file_data, f"{at}.file_data")
    return Document(data=data, media_type=media_type, name=file.filename, extra=extra)


def _data_url(url: str, at: str) -> tuple[str | None, bytes]:
    """RFC 2397, base64 only."""
    head = _DATA_URL.match(url)
    if head is None or head.group(2) is None:
        raise RequestError(
            f"{at} must have the form data:TYPE;base64,DATA", param=at, code="invalid_url"
        )
    return head.group(1) or None, _base64(url[head.end() :], at)


def _base64(text: str, at: str) -> bytes:
    try:
        return b64decode(_BLANK.sub("", text), validate=True)
    except (Base64Error, ValueError):
        raise RequestError(f"{at} is not valid base64", param=at, code="invalid_base64") from None
