"""What becomes of each field of a Completions request: the protocol's capability table."""

from __future__ import annotations

from typing import Final

from tokenwire.core.field_rule import FieldRule
from tokenwire.plugins.protocols._shared.answer_shape import SHAPE_FIELDS

__all__ = ("FIELDS",)

FIELDS: Final = (
    FieldRule("model", "used", "a model's name or alias"),
    FieldRule(
        "prompt",
        "used",
        "text, texts, token ids or lists of them; prompt p has the choices p * n to p * n + n - 1",
    ),
    FieldRule(
        "suffix",
        "used",
        "the answer fills the gap before it, where the vocabulary has tokens for it; else refused",
    ),
    FieldRule("add_special_tokens", "used", "false: no BOS before a prompt of text"),
    FieldRule("temperature", "used", "0 to 2"),
    FieldRule("top_p", "used", "above 0, to 1"),
    FieldRule("top_k", "used", "-1 and 0: no limit"),
    FieldRule("min_p", "used", "0 to 1", ("min_p",)),
    FieldRule("frequency_penalty", "used", "-2 to 2", ("penalties",)),
    FieldRule("presence_penalty", "used", "-2 to 2", ("penalties",)),
    FieldRule("repetition_penalty", "used", "above 0"),
    FieldRule("seed", "used", "64 bits; the same for every prompt", ("seed",)),
    FieldRule("logit_bias", "used", "token ids to -100 to 100", ("logit_bias",)),
    FieldRule("allowed_token_ids", "used", "no other is chosen", ("allowed_ids",)),
    FieldRule("max_tokens", "used", "16 by default; 0 with echo: nothing but the prompt"),
    FieldRule("min_tokens", "used", "before them nothing stops"),
    FieldRule("stop", "used", "a string or at most 64; none may be empty"),
    FieldRule("stop_token_ids", "used", "ids that end an answer"),
    FieldRule("ignore_eos", "used", "go on where the model would end"),
    FieldRule("include_stop_str_in_output", "used", "leave the stop string in the text"),
    FieldRule("n", "used", "1 to 128"),
    FieldRule(
        "best_of",
        "emulated",
        "so many candidates, of which the n with the highest mean log probability are sent; not"
        " with stream",
        ("logprobs",),
        "refused",
    ),
    FieldRule("logprobs", "used", "0 to 20 alternatives", ("logprobs",), "refused"),
    FieldRule("echo", "used", "the prompt's text first; with logprobs, those of its tokens too"),
    FieldRule("stream", "used", "server-sent events"),
    FieldRule("stream_options.include_usage", "used", "a last chunk with the usage"),
    FieldRule("stream_options.continuous_usage_stats", "used", "the usage so far in every chunk"),
    FieldRule("user", "used", "the user; it never decides the tenant"),
    FieldRule("safety_identifier", "used", "its newer name, which gives way to it"),
    FieldRule("session_id", "used", "the session"),
    FieldRule("prompt_cache_key", "used", "the session, where session_id is not set"),
    FieldRule("cache_salt", "used", "keeps cached prefixes apart"),
    FieldRule("priority", "used", "a larger number is more urgent"),
    *SHAPE_FIELDS,
    FieldRule("skip_special_tokens", "ignored", "special tokens are never text of an answer"),
    FieldRule("spaces_between_special_tokens", "ignored", "there are none to put spaces between"),
    FieldRule("truncate_prompt_tokens", "ignored", "a prompt that does not fit is refused"),
    FieldRule("prompt_logprobs", "ignored", "send echo with logprobs"),
    FieldRule("return_token_ids", "ignored", "ask /v1/generate, which answers in ids"),
    FieldRule("return_tokens_as_token_ids", "ignored", "ask /v1/generate, which answers in ids"),
    FieldRule("use_beam_search", "ignored", "answers are sampled"),
    FieldRule("length_penalty", "ignored", "answers are sampled"),
    FieldRule("service_tier", "ignored", "there is one"),
    FieldRule("metadata", "ignored", "nothing is stored"),
    FieldRule("store", "ignored", "nothing is stored"),
)
