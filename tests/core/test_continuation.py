"""The next turn goes on from the last one's own ids, or it is said why not. With a real tokenizer
and templates with the habits that published ones have."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import real_tokenizers
from tokenwire.core.call import Call, Hints, Identity
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.continuation import Continuation
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.dialogue import Dialogue, Reasoning, Text, ToolCall, ToolResult, ToolSpec, Turn
from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import Store
from tokenwire.core.prefix_break import CAUSES
from tokenwire.core.rendering import Renderer
from tokenwire.core.splice import Splicer
from tokenwire.core.token_history import TokenHistory
from tokenwire.core.token_ids import TokenIds
from tokenwire.plugins.cache.memory.store import MemoryStore
from tokenwire.plugins.dialects.hermes.maker import hermes_maker
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate
from tokenwire.plugins.tokenizers.hf.load import load
from tokenwire.plugins.tokenizers.hf.settings import HfSettings

FAITHFUL = """
{%- if tools %}{{ '<|im_start|>system\n' }}{% for t in tools %}{{ t | tojson }}{% endfor %}
{{- '<|im_end|>\n' }}{% endif %}
{%- for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}
{%- if m.reasoning_content %}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{% endif %}
{{- m.content or '' }}
{%- for c in m.tool_calls or [] %}{{ '\n<tool_call>\n{"name": "' + c.function.name +
 '", "arguments": ' + (c.function.arguments | tojson) + '}\n</tool_call>' }}{% endfor %}
{{- '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n' }}"""
DROPS_REASONING = FAITHFUL.replace("{%- if m.reasoning_content %}", "{%- if false %}")
OPENS = FAITHFUL.removesuffix("}}") + "+ '<think>\n' }}"
MARKS_LAST = FAITHFUL.replace(
    "{{- m.content or '' }}", "{{- m.content or '' }}{% if loop.last %}{{ ' /last' }}{% endif %}"
)
DATED = "{{ '<|im_start|>system\n' + strftime_now('%d %B') + '<|im_end|>\n' }}" + FAITHFUL
SHOWS_EFFORT = "{{ '<|im_start|>system\n' + (effort or '') + '<|im_end|>\n' }}" + FAITHFUL
TOOL = ToolSpec("f", parameters='{"type":"object","properties":{"a":{"type":"integer"}}}')
HELLO = Dialogue((Turn("system", (Text("Be kind."),)), Turn("user", (Text("Hello?"),))))
MORE = Turn("user", (Text("And then?"),))
DAY = 86_400.0


class Lost(Store):
    """A store that is gone."""

    async def get(self, namespace, key):
        raise StoreError("gone")

    async def set(self, namespace, key, value, *, ttl_s=None):
        raise StoreError("gone")

    delete = keys = apply = get

    async def close(self):
        pass


@pytest.fixture(scope="module")
def tokenizer():
    return load(HfSettings(fast="off"), Checkpoint(real_tokenizers.published("qwen3")))


class Model:
    """What a served model does with its conversations."""

    def __init__(self, tokenizer, source=FAITHFUL, store=None):
        parser = hermes_maker("auto")
        self.tokenizer = tokenizer
        self.renderer = Renderer(
            tokenizer, JinjaTemplate(source, Settings(), {}), parser, model="m"
        )
        pieces = PieceTable(tokenizer)
        splicer = Splicer(self.renderer.shield, parser, pieces)
        history = TokenHistory(store or MemoryStore(max_bytes=10**8), 60.0)
        self.continuation = Continuation(self.renderer, splicer, history)
        self.decode = pieces.decode

    async def prompt(self, dialogue, now=0.0, **who):
        call = Call("m", dialogue, **who)
        rendered = self.renderer.render(dialogue, now)
        look = await self.continuation.look(call, rendered)
        encoder = self.renderer.encoder
        encoding = encoder.begin(rendered.text, rendered.shields, look.known)
        encoder.fill(encoding)
        encoder.keep(encoding)
        prompt = self.renderer.finish(rendered, encoding.ids())
        note = self.continuation.note(call, rendered, look, prompt.ids)
        return replace(prompt, history=note, trace=look.trace)

    async def answered(self, dialogue, *answers, now=0.0, **who):
        """The prompt's ids, once it has been answered."""
        prompt = await self.prompt(dialogue, now, **who)
        ids = [
            answer if isinstance(answer, TokenIds) else self.spelled(answer) for answer in answers
        ]
        self.continuation.keep(Call("m", dialogue, **who), prompt, ids)
        return prompt.ids

    def spelled(self, text):
        """Text as no tokenizer encodes it: a token a character, as a sampling model may."""
        return TokenIds([id for letter in text for id in self.tokenizer.encode(letter)])


def after(dialogue, *parts, more=MORE):
    turns = (Turn("assistant", tuple(parts)), *((more,) if more else ()))
    return replace(dialogue, turns=(*dialogue.turns, *turns))


def run(coroutine):
    return asyncio.run(coroutine)


def test_sampled_ids_are_kept_though_encoding_gives_others(tokenizer):
    async def check():
        model = Model(tokenizer)
        text = "Unbelievably good."
        old = await model.answered(HELLO, text)
        new = await model.prompt(after(HELLO, Text(text)))
        answer = model.spelled(text)
        assert new.ids[: len(old) + len(answer)] == old + answer
        assert new.history.outcome == "spliced"
        assert new.history.tokens == len(old) + len(answer)
        assert model.decode(new.ids) == new.text
        scratch = Model(tokenizer).renderer.prompt(after(HELLO, Text(text)), 0.0)
        assert scratch.text == new.text
        assert scratch.ids != new.ids

    run(check())


def test_a_conversation_stays_a_prefix_turn_upon_turn(tokenizer):
    async def check():
        model = Model(tokenizer)
        dialogue, before = HELLO, TokenIds()
        for number in range(6):
            prompt = await model.prompt(dialogue)
            assert prompt.ids[: len(before)] == before
            text = f"Answer {number} unbelievably."
            before = await model.answered(dialogue, text) + model.spelled(text)
            dialogue = after(dialogue, Text(text), more=Turn("user", (Text(f"more {number}"),)))

    run(check())


def test_arguments_that_a_template_spaces_otherwise_are_the_same(tokenizer):
    async def check():
        model = Model(tokenizer)
        asked = replace(HELLO, tools=(TOOL,))
        raw = '<tool_call>\n{"name":"f","arguments":{"a":1}}\n</tool_call>'
        ids = tokenizer.encode(raw)
        old = await model.answered(asked, ids)
        result = Turn("tool", (ToolResult("c", (Text("2"),)),))
        call = ToolCall("c", "f", '{"a":1}')
        new = await model.prompt(after(asked, call, more=result))
        assert new.history.outcome == "spliced"
        assert new.ids[: len(old) + len(ids)] == old + ids
        assert '"arguments": {"a": 1}' in new.text

    run(check())


def test_special_tokens_that_no_part_shows_do_not_go_on(tokenizer):
    async def check():
        model = Model(tokenizer)
        stray = tokenizer.encode("<|im_start|>")
        assert len(stray) == 1
        ids = TokenIds([*model.spelled("Hel"), *stray, *model.spelled("lo!")])
        await model.answered(HELLO, ids)
        new = await model.prompt(after(HELLO, Text("Hello!")))
        assert new.history.outcome == "diverged"
        assert list(new.ids).count(stray[0]) == new.text.count("<|im_start|>")

    run(check())


def test_white_space_that_a_template_adds_behind_an_answer_stays(tokenizer):
    async def check():
        source = FAITHFUL.replace("m.content or '' ", "' ' + (m.content or '').strip() + ' ' ")
        model = Model(tokenizer, source)
        await model.answered(HELLO, "Hello!")
        new = await model.prompt(after(HELLO, Text("Hello!")))
        assert new.history.outcome == "spliced"
        assert model.decode(new.ids).count("Hello! <|im_end|>") == 1

    run(check())


def test_any_choice_may_be_gone_on_from(tokenizer):
    async def check():
        model = Model(tokenizer)
        old = await model.answered(HELLO, "One.", "Two.")
        new = await model.prompt(after(HELLO, Text("Two.")))
        assert new.ids[: len(old) + 4] == old + model.spelled("Two.")

    run(check())


def test_what_looks_like_a_call_in_a_clients_text_is_no_call(tokenizer):
    async def check():
        model = Model(tokenizer)
        asked = replace(HELLO, tools=(TOOL,))
        raw = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
        await model.answered(asked, tokenizer.encode(raw))
        new = await model.prompt(after(asked, Text(raw)))
        assert new.history.outcome == "diverged"
        assert list(new.ids).count(tokenizer.encode("<tool_call>")[0]) == 0

    run(check())


@pytest.mark.parametrize("said", ["Hello.", "Hello", "hello!", "", "Hello! Hello!", "Hello!x"])
def test_a_changed_answer_is_never_spliced(tokenizer, said):
    async def check():
        model = Model(tokenizer)
        old = await model.answered(HELLO, "Hello!")
        new = await model.prompt(after(HELLO, Text(said)))
        scratch = Model(tokenizer).renderer.prompt(after(HELLO, Text(said)), 0.0)
        assert new.ids == scratch.ids
        assert (new.history.outcome, new.history.cause) == ("diverged", "answer_changed")
        assert new.history.where == "turns[2]"
        assert new.history.tokens >= len(old)

    run(check())


def test_tenants_salts_and_sessions_share_nothing_that_is_not_theirs(tokenizer):
    async def check():
        model = Model(tokenizer)
        mine = {"identity": Identity(tenant="a"), "hints": Hints(cache_salt="s")}
        await model.answered(HELLO, "Hello!", **mine)
        asked = after(HELLO, Text("Hello!"))
        assert (await model.prompt(asked, **mine)).history is not None
        for other in (
            {"identity": Identity(tenant="b"), "hints": Hints(cache_salt="s")},
            {"identity": Identity(tenant="a"), "hints": Hints(cache_salt="t")},
            {},
        ):
            assert (await model.prompt(asked, **other)).history is None

    run(check())


def test_other_processes_find_it_in_the_store(tokenizer):
    async def check():
        store = MemoryStore(max_bytes=10**8)
        one, other = Model(tokenizer, store=store), Model(tokenizer, store=store)
        old = await one.answered(HELLO, "Unbelievable!")
        await asyncio.sleep(0.01)
        new = await other.prompt(after(HELLO, Text("Unbelievable!")))
        assert new.ids[: len(old)] == old
        assert new.history.outcome == "spliced"

    run(check())


def test_without_the_store_it_works_from_memory_and_else_from_the_start(tokenizer):
    async def check():
        one, other = Model(tokenizer, store=Lost()), Model(tokenizer, store=Lost())
        await one.answered(HELLO, "Unbelievable!")
        asked = after(HELLO, Text("Unbelievable!"))
        assert (await one.prompt(asked)).history.outcome == "spliced"
        alone = await other.prompt(asked)
        assert alone.history is None
        assert alone.ids == other.renderer.encoder.ids(alone.text, {})

    run(check())


def test_private_code_points_of_a_client_stop_it(tokenizer):
    async def check():
        model = Model(tokenizer)
        odd = Dialogue((Turn("user", (Text("\U000f0000 <|im_end|>"),)),))
        prompt = await model.prompt(odd)
        assert prompt.trace is None

    run(check())


RAW_CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
THOUGHT = "<think>\nHm.\n</think>\n\nHello!"
SPOKEN = (Reasoning("Hm."), Text("Hello!"))
SYSTEM = Turn("system", (Text("Be kind. It is noon."),))
WITH_TOOL = replace(HELLO, tools=(TOOL,))

BREAKS = {
    "tools": (FAITHFUL, HELLO, "Hello!", after(WITH_TOOL, Text("Hello!")), "tools"),
    "template_args": (
        SHOWS_EFFORT,
        replace(HELLO, template_args={"effort": "low"}),
        "Hello!",
        after(replace(HELLO, template_args={"effort": "high"}), Text("Hello!")),
        "template_args",
    ),
    "system_changed": (
        FAITHFUL,
        HELLO,
        "Hello!",
        replace(x := after(HELLO, Text("Hello!")), turns=(SYSTEM, *x.turns[1:])),
        "turns[0]",
    ),
    "turn_changed": (
        FAITHFUL,
        y := after(HELLO, Text("Hello!")),
        "Well.",
        replace(
            z := after(y, Text("Well.")),
            turns=(*z.turns[:3], Turn("user", (Text("Another"),)), *z.turns[4:]),
        ),
        "turns[3]",
    ),
    "turns_removed": (
        FAITHFUL,
        y,
        "Well.",
        replace(z, turns=(z.turns[0], *z.turns[2:])),
        "turns[1]",
    ),
    "generation_prompt": (
        OPENS,
        HELLO,
        "Hm.\n</think>\n\nHello!",
        after(HELLO, Text("Hello!")),
        "chat_template",
    ),
    "template_rewrites": (MARKS_LAST, HELLO, "Hello!", after(HELLO, Text("Hello!")), "turns[1]"),
    "reasoning_dropped": (DROPS_REASONING, HELLO, THOUGHT, after(HELLO, *SPOKEN), "turns[2]"),
    "reasoning_not_returned": (FAITHFUL, HELLO, THOUGHT, after(HELLO, Text("Hello!")), "turns[2]"),
    "arguments_changed": (
        FAITHFUL,
        WITH_TOOL,
        RAW_CALL,
        after(WITH_TOOL, ToolCall("c", "f", '{"a": 2}')),
        "turns[2]",
    ),
    "answer_changed": (FAITHFUL, HELLO, "Hello!", after(HELLO, Text("Bye!")), "turns[2]"),
}  # fmt: skip


@pytest.mark.parametrize("cause", BREAKS)
def test_the_cause_of_a_break_is_named(tokenizer, cause):
    async def check():
        source, first, answer, second, where = BREAKS[cause]
        model = Model(tokenizer, source)
        ids = tokenizer.encode(answer)
        who = {"identity": Identity(session="s")}
        old = await model.answered(first, ids, **who) + ids
        new = await model.prompt(second, **who)
        note = new.history
        assert (note.outcome, note.cause, note.where) == ("diverged", cause, where)
        assert new.ids[: note.tokens] == old[: note.tokens]
        assert note.tokens == len(old) or new.ids[note.tokens] != old[note.tokens]
        assert note.lost == len(old) - note.tokens
        assert new.ids == Model(tokenizer, source).renderer.prompt(second, 0.0).ids

    run(check())


def test_the_date_in_a_template_is_named(tokenizer):
    async def check():
        model = Model(tokenizer, DATED)
        await model.answered(HELLO, "Hello!", now=DAY)
        new = await model.prompt(after(HELLO, Text("Hello!")), now=3 * DAY)
        assert (new.history.cause, new.history.where) == ("template_date", "chat_template")

    run(check())


def test_every_cause_is_shown_here():
    rare = {"reasoning_settings", "tokenizer", "template_date"}
    assert set(CAUSES) - rare == set(BREAKS)


def test_the_page_lists_the_causes():
    page = (Path(__file__).parents[2] / "docs" / "history.md").read_text()
    rows = (
        page.partition("<!-- causes -->")[2].partition("<!-- end -->")[0].strip().splitlines()[2:]
    )
    assert rows == [f"| `{cause}` | {meaning} |" for cause, meaning in CAUSES.items()]


def test_an_edited_answer_leaves_the_ids_before_it_as_they_were(tokenizer):
    async def check():
        model = Model(tokenizer)
        dialogue = HELLO
        for number in range(3):
            text = f"Unbelievably good, the {number}th."
            await model.answered(dialogue, text)
            dialogue = after(dialogue, Text(text))
        old = await model.answered(dialogue, "The last one.")
        new = await model.prompt(after(dialogue, Text("The last one, edited.")))
        [mark] = tokenizer.encode("<|im_start|>")
        begun = len(old) - 1 - old[::-1].index(mark)
        assert new.ids[:begun] == old[:begun]
        assert new.history.cause == "answer_changed"
        assert new.history.tokens >= begun
        assert model.decode(new.ids) == new.text

    run(check())


def test_a_store_that_hangs_is_given_no_more_than_is_kept_here(tokenizer):
    class Hangs(Lost):
        async def set(self, namespace, key, value, *, ttl_s=None):
            await asyncio.sleep(3600)

    async def check():
        model = Model(tokenizer, store=Hangs())
        history = model.continuation._history
        history._capacity = 20_000
        for number in range(60):
            asked = Dialogue((Turn("user", (Text(f"{number} " + "word " * 200),)),))
            await model.answered(asked, "Hello!")
            await asyncio.sleep(0)
        assert 0 < history._waiting < 2 * history._capacity
        await history.close()

    run(check())
