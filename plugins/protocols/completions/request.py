"""A Call back to the request it was read from. Knows no reply."""

from __future__ import annotations

from typing import Final

import msgspec

from tokenwire.core.call import Call, RawPrompt
from tokenwire.plugins.protocols._shared.answer_shape import write_format

__all__ = ("encode_call",)

OPEN_LIMIT: Final = 4096
"""For calls that leave the limit open, where this protocol means 16 tokens."""

_encode: Final = msgspec.json.Encoder().encode


def encode_call(call: Call) -> bytes:
    """Fields that are not set are left out; `extra` is written back. A call of another protocol,
    which has no raw prompt, asks with the text of its turns."""
    output, stopping, sampling = call.output, call.stopping, call.sampling
    prompts = call.prompts or (RawPrompt(_text(call)),)
    body: dict[str, object] = {
        "model": call.model,
        "prompt": _prompt(prompts),
        "suffix": prompts[0].suffix,
        "add_special_tokens": None if prompts[0].begin else False,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "seed": sampling.seed,
        "logit_bias": {str(id_): bias for id_, bias in sampling.logit_bias.items()} or None,
        "allowed_token_ids": sampling.allowed_ids or None,
        "max_tokens": OPEN_LIMIT if stopping.max_tokens is None else stopping.max_tokens,
        "min_tokens": stopping.min_tokens or None,
        "stop": stopping.strings or None,
        "stop_token_ids": stopping.ids or None,
        "ignore_eos": stopping.ignore_eos or None,
        "include_stop_str_in_output": stopping.include_stop or None,
        "n": output.n if output.n > 1 else None,
        "best_of": output.best_of,
        "logprobs": output.logprobs,
        "echo": output.echo or None,
        "stream": output.stream or None,
        "stream_options": _stream_options(call),
        "response_format": write_format(call.dialogue.response_format),
        "user": call.identity.user,
        "session_id": call.identity.session,
        "priority": call.hints.priority or None,
        "cache_salt": call.hints.cache_salt,
    }
    given = {name: value for name, value in body.items() if value is not None}
    return _encode(given | dict(call.extra))


def _prompt(prompts: tuple[RawPrompt, ...]) -> object:
    each = [prompt.text if prompt.ids is None else prompt.ids for prompt in prompts]
    return each[0] if len(each) == 1 else each


def _text(call: Call) -> str:
    texts = [getattr(part, "text", None) for turn in call.dialogue.turns for part in turn.parts]
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _stream_options(call: Call) -> dict[str, object] | None:
    if not call.output.stream:
        return None
    options: dict[str, object] = {}
    if call.output.usage:
        options["include_usage"] = True
    if call.output.continuous_usage:
        options["continuous_usage_stats"] = True
    return options or None
