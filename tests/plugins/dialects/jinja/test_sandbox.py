"""Hostile templates: no way out, nothing changed, and an end after bounded work and output."""

from __future__ import annotations

import pytest

from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.errors import ConfigError, RequestError
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate

HELLO = Dialogue(turns=(Turn("user", (Text("hi"),)),))
# Small bounds, so that the suite is quick; what they bound is the same.
SMALL = Settings(max_steps=50_000, max_output=200_000)
NEST = "{% set ns = namespace(x=['ab'], y=['ab']) %}{% for i in range(90) %}BODY{% endfor %}"
GROW = NEST.replace("BODY", "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}")
DICTS = NEST.replace("BODY", "{% set ns.x = dict(a=ns.x, b=ns.x) %}")
BIG = "{% set x = 'a' * 100000 %}{% for i in range(99999) %}BODY{% endfor %}"


def render(source: str, settings: Settings = SMALL) -> str:
    return JinjaTemplate(source, settings).render(HELLO, 0.0).text


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(90000) %}{% for j in range(90000) %}x{% endfor %}{% endfor %}",
        "{% for i in range(90000) %}{% for j in range(9000) if false %}{% endfor %}{% endfor %}",
        "{% for i in range(90000) %}" + "z" * 100_000 + "{% endfor %}",
        "{% for i in range(99999) %}{{ 'y' * 30000 }}{% endfor %}",
        "{{ 'x' * 999999999999 }}",
        "{{ [1] * 999999999999 }}",
        "{{ 7 ** 9999999999 }}",
        "{% set ns = namespace(n=3) %}{% for i in range(90) %}{% set ns.n = ns.n * ns.n %}"
        "{% endfor %}",
        NEST.replace("BODY", "{% set ns.x = 'ab' ~ ns.x ~ ns.x %}"),
        "{% set ns = namespace(x='ab') %}{% for i in range(90) %}{% set ns.x = ns.x + ns.x %}"
        "{% endfor %}",
        GROW + "{{ ns.x }}",
        GROW + "{{ ns.x | tojson }}",
        GROW + "{{ ns.x == ns.y }}",
        GROW + "{{ ns.x is eq ns.y }}",
        GROW + "{{ ns.x in [ns.y] }}",
        GROW + "{{ [ns.y].index(ns.x) }}",
        GROW + "{{ '%s' % ns.x }}",
        GROW + "{{ '{}'.format(ns.x) }}",
        GROW + "{{ '{!r}'.format(ns.x) }}",
        GROW + "{{ [ns.x] | map('string') | list }}",
        GROW + "{{ [ns.x] | join('-') }}",
        GROW + "{{ raise_exception(ns.x) }}",
        GROW + "{{ ns }}",
        GROW + "{{ 'a' ~ ns.x }}",
        DICTS + "{{ ns.x }}",
        "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
        NEST.replace("BODY", "{% set ns.x = (ns.x, ns.x) %}") + "{{ {ns.x: 1} }}",
        "{% macro f(n) %}{{ f(n - 1) }}{{ f(n - 1) if n > 0 }}{% endmacro %}{{ f(60) }}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
        "{{ f(60) }}",
        "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}",
        "{% for i in range(99999) recursive %}{{ loop(range(99999)) }}{% endfor %}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:{w}}'.format(1, w=1000000000) }}",
        "{{ ('{0}' * 10000).format('a' * 100000) }}",
        "{{ ('%s' * 10000) % (('a' * 100000,) * 10000) }}",
        "{{ 'a'.ljust(10000000000) }}",
        "{{ 'a' | center(10000000000) }}",
        "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
        "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}",
        "{{ ('a' * 100000).join(['b'] * 100000) }}",
        "{{ (['b'] * 100000) | join('a' * 100000) }}",
        "{{ ('\n' * 100000) | indent(100000) }}",
        "{{ ('a b ' * 10000) | wordwrap(1, wrapstring='x' * 100000) }}",
        "{{ [1] | tojson(indent=1000000) }}",
        "{{ 1.5 | round(100000000, 'ceil') }}",
        "{{ ([[1] * 1000] * 10000) | sum(start=[]) }}",
        "{{ strftime_now('%Y' * 1000000) }}",
        BIG.replace("BODY", "{% set y = x[1:] %}"),
        BIG.replace("BODY", "{% set y = x.strip() %}"),
        BIG.replace("BODY", "{% set y = x | upper %}"),
        BIG.replace("BODY", "{% if 'b' in x %}{% endif %}"),
        BIG.replace("BODY", "{% if x is lower %}{% endif %}"),
        "{% for i in range(9999) %}{{ 9 in (range(99999) | map('string')) }}{% endfor %}",
        "{% for i in range(9999) %}{{ range(99999) | sum }}{% endfor %}",
        "{% for i in range(9999) %}{{ range(99999) | list | string | length }}{% endfor %}",
    ],
)
def test_a_bound_ends_it(source: str) -> None:
    with pytest.raises(RequestError) as caught:
        render(source)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{% set x = [] %}{{ x.append(x) }}",
        "{% set x = [] %}{{ x.append({}) }}",
        "{% set x = [[]] %}{{ x.append(1) }}",
        "{{ messages[0].update({}) }}",
        "{{ raise_exception.__globals__.os }}",
        "{{ ''.format.__self__.__class__.__base__ }}",
        "{{ '{0.__class__.__mro__}'.format('') }}",
        "{{ ['{0.__class__.__mro__}'] | map('format', '') | list }}{{ x.y.z }}",
        "{{ 'a'.encode() }}",
        "{{ 'a'.translate({97: 'b' * 100000}) }}",
        "{{ '\t'.expandtabs(1000000000) }}",
        "{{ (1).to_bytes(1000000000, 'big') }}",
        "{% include 'etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ lipsum(3) }}",
        "{% set ns = namespace(_x=1) %}",
    ],
)
def test_there_is_no_way_out_and_nothing_impure(source: str) -> None:
    with pytest.raises(RequestError) as caught:
        render(source)
    for word in ("Traceback", ".py", "site-packages"):
        assert word not in caught.value.message


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{% for %}", "line 1"),
        ("a\n{{ x", "line 2"),
        ("{{ [1] | random }}", "random"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "does not compile"),
    ],
)
def test_a_template_that_does_not_compile_is_a_configuration_error(source: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        render(source)


def test_the_meter_cannot_be_reached_from_a_template() -> None:
    for source in (
        "{{ the_meter }}",
        "{{ self.the_meter }}",
        "{{ self._TemplateReference__context }}",
    ):
        try:
            shown = render(source)
        except RequestError:
            continue
        assert "Meter" not in shown
    with pytest.raises(ConfigError):
        render("{{ 1 | the tick }}")


def test_what_is_well_within_the_bounds_is_not_touched() -> None:
    source = (
        "{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(9) }}"
        "{% for c in 'abc' if c != 'b' %}{{ loop.index }}{{ c }}{% break %}{% endfor %}"
        "{{ '%s-%03d' % ('x', 7) }}{{ '{:>4}'.format('y') }}{{ 'a,b'.split(',') | join('+') }}"
        "{{ [3, 1, 2] | sort | list }}{{ 2 ** 10 }}{{ 'ab' * 2 }}{{ (1, 2)[0] }}"
        "{{ {(1, 2): 'k'}[(1, 2)] }}"
        "{{ 'é' | tojson }}{{ {'b': 1, 'a': [1.5, none]} | tojson(sort_keys=True) }}"
        "{% generation %}{% set x = 'in' %}{{ x }}{% endgeneration %}"
        "{{ 'x' ~ 1 ~ [2] }}{{ 'abc'[::-1] }}"
        "{{ dict(a=1, self=2).items() | list }}{{ '{}{x}'.format(1, x=2) }}"
        "{{ dict.fromkeys('ab', 1) }}"
    )
    assert render(source) == (
        "98765432101ax-007   ya+b[1, 2, 3]1024abab1k"
        "\"é\"{\"a\": [1.5, null], \"b\": 1}inx1[2]cba[('a', 1), ('self', 2)]12{'a': 1, 'b': 1}"
    )


def test_a_template_may_count_with_a_list_of_words() -> None:
    source = "{% set x = namespace(y=[]) %}{% set _ = x.y.append('a') %}{{ x.y.pop(0) }}{{ x.y }}"
    assert render(source) == "a[]"


def test_a_list_that_a_client_gave_is_not_changed() -> None:
    template = JinjaTemplate("{% set _ = x.append('b') %}{{ x | join }}", Settings())
    dialogue = Dialogue((Turn("user", (Text("q"),)),), template_args={"x": ["a"]})
    assert [template.render(dialogue, 0.0).text for _ in range(2)] == ["ab", "ab"]
    assert dialogue.template_args == {"x": ["a"]}
