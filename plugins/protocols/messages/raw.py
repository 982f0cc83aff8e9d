"""Parts of a request that are kept as they were written: schemas and tool inputs, as JSON text.

A second, typed look at the body, which happens only when the first one found such a field.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import msgspec

from tokenwire.core.errors import RequestError
from tokenwire.plugins.protocols.messages.schema import RawBody

__all__ = ("RawFields",)

_raw: Final = msgspec.json.Decoder(RawBody)
BOM: Final = b"\xef\xbb\xbf"


class RawFields:
    """JSON text by place. Ask only for what the first look has found and checked."""

    def __init__(self, body: bytes) -> None:
        self._bytes = body

    def tool_schema(self, tool: int) -> str:
        tools = self._body.tools
        assert tools is not None
        return bytes(tools[tool].input_schema).decode()

    def tool_input(self, message: int, block: int) -> str:
        content = self._body.messages[message].content
        assert not isinstance(content, str)
        return bytes(content[block].input).decode()

    def format_schema(self) -> str:
        config, old = self._body.output_config, self._body.output_format
        found = config.format if config is not None and config.format is not None else old
        assert found is not None
        return bytes(found.schema).decode()

    @cached_property
    def _body(self) -> RawBody:
        try:
            return _raw.decode(self._bytes.removeprefix(BOM))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            # NOTE: read_object has read the same bytes, so this is not known to happen.
            raise RequestError(
                f"the body is not valid JSON: {error}", code="invalid_json"
            ) from None
