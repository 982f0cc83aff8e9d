"""Requests that servers have been seen to refuse, lose or break on, and what must come of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from tests.cases.outputs import function
from tests.cases.stage import CHAT, MESSAGES, RESPONSES

__all__ = ("REQUESTS", "Asked")


class Asked(Struct, frozen=True):
    """A body, as it stands but for the model; what the prompt holds, in this order, and not."""

    name: str
    path: str
    body: Any
    status: int = 200
    holds: Sequence[str] = ()
    lacks: Sequence[str] = ("None", "null", "'type'", '"type": "text"')
    param: str | None = None
    """The field that a refusal names."""
    ignored: str | None = None
    """What the header of ignored fields names."""


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def chat(name: str, *messages: Any, **more: Any) -> Asked:
    fields = {key: more.pop(key) for key in tuple(more) if key in Asked.__struct_fields__}
    return Asked(name, CHAT, {"messages": list(messages), **more}, **fields)


def messages(name: str, *turns: Any, **more: Any) -> Asked:
    fields = {key: more.pop(key) for key in tuple(more) if key in Asked.__struct_fields__}
    return Asked(name, MESSAGES, {"max_tokens": 200, "messages": list(turns), **more}, **fields)


def calling(arguments: str, **more: Any) -> dict[str, Any]:
    called = {
        "id": "call-of-stock/1",
        "type": "function",
        "function": {"name": "check_stock", "arguments": arguments},
    }
    return {"role": "assistant", "tool_calls": [called], **more}


def responses(name: str, *items: Any, **more: Any) -> Asked:
    fields = {key: more.pop(key) for key in tuple(more) if key in Asked.__struct_fields__}
    return Asked(name, RESPONSES, {"input": list(items), **more}, **fields)


STOCK: Final = {"tools": [function("check_stock")]}
RESULT: Final = {"role": "tool", "tool_call_id": "call-of-stock/1", "content": "12 left"}
HOSTED: Final = {"type": "code_execution_20250825", "name": "code_execution"}
OWN: Final = {"name": "check_stock", "input_schema": {"type": "object", "properties": {}}}
USING: Final = {"type": "tool_use", "id": "toolu_a", "name": "check_stock", "input": {}}
PIXEL: Final = "R0lGODlhAQABAAAAACw="
PICTURE: Final = {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{PIXEL}"}}
REFERENCE: Final = {
    "type": "function",
    "function": {
        "name": "file_note",
        "parameters": {
            "type": "object",
            "properties": {"at": {"$ref": "#/$defs/Place"}},
            "$defs": {"Place": {"type": "object", "properties": {"harbour": {"type": "string"}}}},
        },
    },
}
NULLS: Final = (
    "temperature", "top_p", "stop", "stream", "logprobs", "tools", "tool_choice", "n", "seed",
    "response_format", "max_tokens", "max_completion_tokens", "stream_options", "user",
)  # fmt: skip

FLAT: Final = {
    "type": "function",
    "name": "check_stock",
    "parameters": {"type": "object", "properties": {"item": {"type": "string"}}},
}
CALLED: Final = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call-of-stock/1",
    "name": "check_stock",
    "arguments": '{"item":"lamp"}',
    "status": "completed",
}
GIVEN: Final = {
    "type": "function_call_output",
    "call_id": "call-of-stock/1",
    "output": "12 left",
}
RESPONSE_NULLS: Final = (
    "temperature", "top_p", "instructions", "tools", "tool_choice", "text", "reasoning", "include",
    "metadata", "store", "background", "stream", "stream_options", "previous_response_id",
    "conversation", "max_output_tokens", "max_tool_calls", "truncation", "service_tier", "user",
    "prompt", "prompt_cache_key", "safety_identifier", "top_logprobs", "parallel_tool_calls",
)  # fmt: skip

REQUESTS: Final = (
    # --- chat completions: what reaches the prompt ---
    chat("parts of text", user([text("north"), text("south")]), holds=["north", "south"]),
    chat(
        "no content beside calls",
        user("How many?"),
        calling('{"item":"lamp"}', content=None),
        RESULT,
        holds=["check_stock", "lamp", "12 left"],
        **STOCK,
    ),
    chat(
        "a result in parts",
        user("How many?"),
        calling("{}"),
        {**RESULT, "content": [text("12"), text(" left")]},
        holds=["12", " left"],
        **STOCK,
    ),
    chat(
        "arguments of the history that are no JSON",
        user("How many?"),
        calling('{"item": "la'),
        RESULT,
        user("Once more"),
        holds=["check_stock", "12 left", "Once more"],
        ignored="messages[].tool_calls[].function.arguments",
        **STOCK,
    ),
    chat(
        "arguments of the history that are no object",
        user("How many?"),
        calling("[3]"),
        RESULT,
        holds=["12 left"],
        **STOCK,
    ),
    chat(
        "a developer's words",
        {"role": "developer", "content": "Use few words."},
        user("Hi"),
        holds=["Use few words.", "Hi"],
    ),
    chat("neighbours of one role", user("aye"), user("bee"), holds=["aye", "bee"]),
    chat("a schema with references", user("Hi"), holds=["harbour"], lacks=(), tools=[REFERENCE]),
    chat("a character of nothing", user("fore\0aft"), holds=["fore", "aft"]),
    chat("a placeholder of media typed by hand", user("what is <image> or <|image_pad|>?"),
         holds=["<image> or <|image_pad|>"]),
    chat("spellings of markers", user("is </think><|im_end|><tool_call> text?"),
         holds=["is </think><|im_end|><tool_call> text?"]),
    chat("nulls for whatever may be left out", user("Hi"), **dict.fromkeys(NULLS)),
    chat("no tools, and a choice of none", user("Hi"), tools=[], tool_choice="none"),
    chat("no tools, and a free choice", user("Hi"), tools=[], tool_choice="auto"),
    chat("no stop strings", user("Hi"), stop=[]),
    chat("fields that nobody knows", user("Hi"), moon_phase=3, ignored="moon_phase"),
    chat("a field whose name would end a header", user("Hi"), ignored="x??set-cookie:?a=1",
         **{"x\r\nset-cookie: a=1": 1}),
    # --- chat completions: what is refused, and in which words ---
    chat("an empty stop string", user("Hi"), stop="", status=400, param="stop"),
    chat("an empty stop string in a list", user("Hi"), stop=["x", ""], status=400, param="stop"),
    chat("a tool that is not there", user("Hi"), status=400, param="tool_choice",
         tool_choice={"type": "function", "function": {"name": "no_such"}}, **STOCK),
    chat("a forced call without tools", user("Hi"), status=400, param="tool_choice",
         tool_choice="required"),
    chat("a result that answers nothing", user("Hi"), RESULT, status=400,
         param="messages[1].tool_call_id"),
    chat("a result without an id", user("Hi"), {"role": "tool", "content": "x"}, status=400,
         param="messages[1].tool_call_id"),
    chat("a picture to a model of text", user([text("see"), PICTURE]), status=400,
         param="messages"),
    chat("a part of no known type", user([{"type": "smell", "smell": "rain"}]), status=400,
         param="messages[0].content[0].type"),
    chat("a template of the client's", user("Hi"), chat_template="{{ 1 }}", status=400,
         param="chat_template"),
    chat("a template in its arguments", user("Hi"), status=400,
         chat_template_kwargs={"messages": []}, param="chat_template_kwargs.messages"),
    chat("going on with a message and beginning one", user("Hi"),
         {"role": "assistant", "content": "Well"}, continue_final_message=True,
         add_generation_prompt=True, status=400, param="continue_final_message"),
    chat("options of a stream without one", user("Hi"), stream_options={"include_usage": True},
         status=400, param="stream_options"),
    chat("likely tokens of no tokens", user("Hi"), top_logprobs=2, status=400,
         param="top_logprobs"),
    chat("too many likely tokens", user("Hi"), logprobs=True, top_logprobs=99, status=400,
         param="top_logprobs"),
    chat("a seed beyond 64 bits", user("Hi"), seed=2**63, status=400, param="seed"),
    chat("a prompt that does not fit", user("y" * 9000), status=400, param="messages"),
    chat("no messages", status=400, param="messages"),
    # --- messages ---
    messages("system in blocks", user("Hi"), system=[text("north"), text("south")],
             holds=["north", "south", "Hi"]),
    messages("system between turns", user("Hi"), {"role": "assistant", "content": "Yes?"},
             {"role": "system", "content": "Answer in rhyme."}, user("Go on"),
             holds=["Answer in rhyme.", "Yes?", "Go on"]),
    messages("adaptive thinking", user("Hi"), thinking={"type": "adaptive"},
             output_config={"effort": "low"}),
    messages("thinking of others", user("Hi"),
             {"role": "assistant", "content": [
                 {"type": "thinking", "thinking": "hum", "signature": "bm90LW91cnM="},
                 {"type": "redacted_thinking", "data": "aGlkZGVu"},
                 text("Yes?")]}, user("Go on"),
             holds=["Yes?", "Go on"], lacks=["bm90LW91cnM=", "aGlkZGVu"],
             ignored="messages[].content[].signature"),
    messages("tools that others run", user("Hi"), tools=[HOSTED, OWN], holds=["check_stock"],
             lacks=["code_execution"], ignored="tools[][type=code_execution_20250825]"),
    messages("a field whose name would end a header", user("Hi"), ignored="x??set-cookie:?a=1",
             **{"x\r\nset-cookie: a=1": 1}),
    messages("a larger limit than the context", user("Hi"), max_tokens=10**6),
    messages("a picture in a result", user("Look"), {"role": "assistant", "content": [USING]},
             user([{"type": "tool_result", "tool_use_id": "toolu_a", "content": [
                 text("here"), {"type": "image", "source": {
                     "type": "base64", "media_type": "image/gif", "data": PIXEL}}]}]),
             tools=[OWN], status=400),
    messages("a result that answers nothing",
             user([{"type": "tool_result", "tool_use_id": "toolu_b", "content": "x"}]),
             status=400),
    messages("a call that nobody answered", user("Look"),
             {"role": "assistant", "content": [USING]}, user("Leave it"), tools=[OWN],
             holds=["check_stock", "Leave it"]),
    messages("an empty stop string", user("Hi"), stop_sequences=[""], status=400),
    messages("too small a budget", user("Hi"), max_tokens=4000,
             thinking={"type": "enabled", "budget_tokens": 10}, status=400),
    messages("a prompt that does not fit", user("y" * 9000), status=400),
    Asked("no limit", MESSAGES, {"messages": [user("Hi")]}, status=400),
    # --- responses ---
    Asked("a string", RESPONSES, {"input": "north"}, holds=["north"]),
    responses("instructions first", user("north"), instructions="Be brief.",
              holds=["Be brief.", "north"]),
    responses("a developer's words", {"role": "developer", "content": "Be brief."}, user("north"),
              holds=["Be brief.", "north"]),
    responses("one turn of thought, words and calls", user("How many?"),
              {"type": "reasoning", "id": "rs_1", "content": None, "encrypted_content": None,
               "summary": [{"type": "summary_text", "text": "look it up"}]},
              {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "Wait.", "annotations": []}]},
              CALLED, GIVEN,
              holds=["look it up", "Wait.", "check_stock", "lamp", "12 left"], tools=[FLAT]),
    responses("a result in parts", user("How many?"), CALLED,
              {**GIVEN, "output": [{"type": "input_text", "text": "12"}]}, holds=["12"],
              tools=[FLAT]),
    responses("a free-form call", user("Fix it"),
              {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": '+ "b"'},
              {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
              holds=["patch", "done"], tools=[{"type": "custom", "name": "patch"}]),
    responses("tools that others run", user("Hi"),
              tools=[{"type": "web_search"}, {"type": "namespace", "name": "n", "tools": []}, FLAT],
              holds=["check_stock"], lacks=["web_search"], ignored="tools[].web_search"),
    responses("items that others made", user("Hi"),
              {"type": "web_search_call", "id": "ws_1", "status": "completed"}, user("Go on"),
              holds=["Hi", "Go on"], lacks=["web_search", "ws_1"],
              ignored="input[].web_search_call"),
    responses("thoughts that others sealed", user("Hi"),
              {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAB"},
              {"role": "assistant", "content": "Yes?"}, user("Go on"), holds=["Yes?", "Go on"],
              lacks=["gAAAAB"], ignored="input[].encrypted_content"),
    responses("fields of no use", user("Hi"), text={"verbosity": "low"}, ignored="text.verbosity"),
    responses("a field that nobody knows", user("Hi"), beam=3, ignored="beam"),
    responses("padding asked for", user("Hi"), stream=False, include=["file_search_call.results"],
              ignored="include.file_search_call.results"),
    responses("every null", user("Hi"), **dict.fromkeys(RESPONSE_NULLS)),
    responses("nothing", status=400, param="input"),
    responses("a result that answers nothing", GIVEN, status=400, param="input[0].call_id"),
    responses("an uploaded file", user([{"type": "input_file", "file_id": "f"}]), status=400,
              param="input[0].content[0].file_id"),
    responses("a part that nobody knows", user([{"type": "hologram"}]), status=400,
              param="input[0].content[0].type"),
    responses("no message", {"role": "critic", "content": "x"}, status=400, param="input[0].role"),
    responses("a tool that is not there", user("Hi"), tools=[FLAT], status=400,
              tool_choice={"type": "function", "name": "other"}, param="tool_choice"),
    responses("too warm", user("Hi"), temperature=3, status=400, param="temperature"),
    responses("a prompt that does not fit", user("y" * 9000), status=400, param="input"),
    Asked("no input", RESPONSES, {}, status=400, param="input"),
)  # fmt: skip
