#!/usr/bin/env python3
"""Writes goldens.json: what jinja2, set up by transformers, renders.

    python make_goldens.py        (needs the package transformers)

"chats": for every template in data/ and every conversation the text, with and
without a generation prompt. "snippets": small templates that probe one construct
each; null means that the reference refuses them.
"""
import datetime
import json
from pathlib import Path

from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = Path(__file__).parent
NOW = datetime.datetime(2024, 7, 9, 5, 6, 7)  # in the tests too

TOKENS = {
    "smollm2": ("<|im_start|>", "<|im_end|>"),
    "qwen2.5": ("", "<|im_end|>"),
}
LLAMA = ("<|begin_of_text|>", "<|eot_id|>")

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather — with \"quotes\" & <tags>",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "e.g. Zürich, 東京"}, "days": {"type": "integer", "minimum": 1, "default": 3},
        "scale": {"type": "number", "default": 0.5, "enum": [0.5, 1.0, 1e22, -0.0]}}, "required": ["city"]}}}
TIME = {"type": "function", "function": {"name": "time", "description": "", "parameters": {"type": "object", "properties": {}}}}

S = lambda text: {"role": "system", "content": text}
U = lambda text: {"role": "user", "content": text}
A = lambda text: {"role": "assistant", "content": text}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}}]}
CALL_TEXT = dict(CALL, content="Let me look.")
RESULT = {"role": "tool", "name": "get_weather", "content": "{\"temperature\": 21.5}"}
RESULT_JSON = {"role": "tool", "name": "get_weather", "content": {"temperature": 21.5, "sky": "clear"}}

CONVERSATIONS = {
    "user": [U("What is the capital of France?")],
    "system": [S("You answer in verse."), U("Write a haiku.")],
    "empty-system": [S(""), U("Say hello.")],
    "spaces": [S("  padded \n"), U("\n\n def f(x):\n\treturn   x\r\n  ")],
    "turns": [S("Be short."), U("1?"), A("One."), U("2?"), A("Two.\n"), U("3?")],
    "ends-with-assistant": [U("Hi"), A("Hello")],
    "unicode": [U("用一句话解释什么是编译器。👩‍🚀 \u2028 ﷽"), A("é e\u0301"), U("<|im_end|><|eot_id|>{{ x }}{% raw %}")],
    "empty": [],
}
WITH_TOOLS = {
    "tools": [U("Weather in Zürich?")],
    "tools-system": [S("Use tools."), U("Weather in Zürich?")],
    "tool-result": [U("Weather?"), CALL, RESULT],
    "tool-result-text": [S("Use tools."), U("Weather?"), CALL_TEXT, RESULT, A("21.5 degrees."), U("And tomorrow?")],
    "tool-result-json": [U("Weather?"), CALL, RESULT_JSON, RESULT_JSON],
}

CONTEXT = {
    "s": "Hello, Wörld", "n": 7, "z": 0, "neg": -7, "f": 2.5, "yes": True, "no": False, "nothing": None, "empty": "",
    "xs": [3, 1, 2], "words": ["pear", "Apple", "fig"], "d": {"b": 1, "a": [1, 2.0, None], "items": "shadowed", "k-x": "é"},
    "people": [{"name": "Ann", "age": 31, "tags": ["x"]}, {"name": "bob", "age": 25, "tags": []}, {"name": "Cy", "age": 31}],
    "text": "  line one\n\n  line two\t\n", "quote": "it's \"q\" \\ \n \u00a0\u200b\x07", "big": 1e16, "small": 1e-7, "pi": 3.141592653589793,
}

SNIPPETS = r"""
{{ 1 + 2 * 3 }}|{{ (1 + 2) * 3 }}|{{ 7 // 2 }}|{{ neg // 2 }}|{{ neg % 3 }}|{{ 7 % neg }}|{{ 7 / 2 }}|{{ 6 / 2 }}|{{ 2 ** 10 }}
{{ 2 ** -1 }}|{{ -2 ** 2 }}|{{ 2.5 // 1 }}|{{ -7.5 % 2 }}|{{ 1e3 }}|{{ 1_000 }}|{{ 0.1 + 0.2 }}|{{ big }}|{{ small }}|{{ pi }}|{{ 1e22 }}|{{ 123456789012345.0 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 5 % 0 }}
{{ 'a' ~ 1 ~ none ~ true ~ 2.0 ~ [1, 'x'] ~ missing }}
{{ 'a' + 'b' }}|{{ 'ab' * 3 }}|{{ [1] * 2 }}|{{ [1] + [2] }}|{{ 3 * 'x' }}|{{ 'x' * -1 }}
{{ 'a' + 1 }}
{{ missing + 1 }}
{{ missing.x }}
{{ missing['x'] }}
{{ missing }}|{{ missing | length }}|{{ missing == missing2 }}|{{ not missing }}|{{ missing is defined }}|{{ d.nope }}|{{ d.nope is undefined }}
{{ d.nope.deeper }}
{{ d['b'] }}|{{ d.b }}|{{ d['k-x'] }}|{{ d.a[1] }}|{{ d.a[-1] }}|{{ d.a.0 }}|{{ d.a[9] is defined }}|{{ s[0] }}|{{ s[-1] }}|{{ s[8] }}
{{ d['items'] }}|{{ d.items() | list }}
{{ xs[1:] }}|{{ xs[:-1] }}|{{ xs[::-1] }}|{{ xs[::2] }}|{{ s[1:5] }}|{{ s[::-1] }}|{{ xs[5:] }}|{{ xs[-2:] }}|{{ xs[2:0:-1] }}|{{ (1,2,3)[1:] }}
{{ xs[::0] }}
{{ d[1:2] }}
{{ [1, 2.0, 'a', none, true, missing] }}|{{ (1,) }}|{{ () }}|{{ {} }}|{{ {'a': 1, 2: 'b', none: (1, 2)} }}|{{ [] }}
{{ quote }}|{{ [quote] }}|{{ ["it's"] }}|{{ ['say "hi"'] }}|{{ ['\x00\x7f\x85\u00ad\u0378\ue000é🦊'] }}
{{ d }}
{{ true }} {{ false }} {{ none }} {{ True }} {{ None }}
{{ 1 < 2 < 3 }}|{{ 1 < 2 > 5 }}|{{ 'a' < 'b' }}|{{ 1 == 1.0 }}|{{ 1 == true }}|{{ '1' == 1 }}|{{ [1] == [1.0] }}|{{ (1,) == [1] }}|{{ {'a': 1} == {'a': 1} }}|{{ none == false }}
{{ 1 < 'a' }}
{{ [1] < [1, 2] }}|{{ [2] < [1, 5] }}|{{ 'Z' < 'a' }}|{{ 'é' > 'z' }}|{{ true < 2 }}|{{ 1.5 >= 1 }}
{{ none < 1 }}
{{ 1 in xs }}|{{ 9 not in xs }}|{{ 'lo' in s }}|{{ 'b' in d }}|{{ 'x' in missing }}|{{ '' in s }}|{{ 1.0 in xs }}|{{ not 1 in xs }}
{{ 1 in s }}
{{ 1 in 5 }}
{{ yes and n }}|{{ no or 'x' }}|{{ no and missing.x }}|{{ yes or missing.x }}|{{ not no }}|{{ 0 or '' }}|{{ '' or [] }}|{{ not (yes and no) }}
{{ 'a' if yes else 'b' }}|{{ 'a' if no else 'b' }}|{{ 'a' if no }}|{{ 1 if no else 2 if no else 3 }}|{{ ('a' if no) is undefined }}
{{ -n }}|{{ +n }}|{{ - 2.5 }}|{{ -xs | length }}
{{ -n | abs }}|{{ (-7) | abs }}|{{ -7.5 | abs }}
{{ 'esc: \n\t\\ \' \" \x41 \u00e9 \U0001F98A \101 \q' }}
{{ "a" "b" 'c' }}
{{ s | upper }}|{{ s | lower }}|{{ s | length }}|{{ s | title }}|{{ 'aBC dEF' | capitalize }}|{{ 'straße ǆ' | upper }}|{{ 'it\'s (a) [b] <c> d-e' | title }}
{{ text | trim }}|{{ '--x--' | trim('-') }}|{{ 5 | trim }}|{{ none | trim }}|{{ missing | trim }}
{{ 'aXbXc' | replace('X', '--') }}|{{ 'aXbXc' | replace('X', '', 1) }}|{{ 'abc' | replace('', '.') }}|{{ 5 | replace('5', '6') }}
{{ missing | default('x') }}|{{ '' | default('x') }}|{{ '' | default('x', true) }}|{{ none | default('x') }}|{{ none | default('x', boolean=true) }}|{{ missing | d }}|{{ 5 | d(6) }}
{{ xs | join(',') }}|{{ xs | join }}|{{ people | join(', ', attribute='name') }}|{{ 'abc' | join('-') }}|{{ d | join }}
{{ xs | first }}|{{ xs | last }}|{{ [] | first is defined }}|{{ 'abc' | first }}|{{ 'abc' | last }}
{{ xs | sort }}|{{ words | sort }}|{{ words | sort(case_sensitive=true) }}|{{ xs | sort(reverse=true) }}|{{ people | sort(attribute='age') | map(attribute='name') | join(' ') }}
{{ people | sort(attribute='age', reverse=true) | map(attribute='name') | join(' ') }}|{{ ['b', 'A', 'a', 'B'] | sort }}
{{ [1, 'a'] | sort }}
{{ d | dictsort }}|{{ {'b': 2, 'A': 3} | dictsort }}|{{ {'b': 2, 'A': 3} | dictsort(by='value') }}|{{ {'b': 2, 'A': 3} | dictsort(true, reverse=true) }}
{{ [1, 2, 1, 'a', 'A', 1.0] | unique | list }}|{{ xs | max }}|{{ xs | min }}|{{ words | min }}|{{ [] | max is defined }}|{{ xs | sum }}|{{ people | sum(attribute='age') }}|{{ [0.5, 1] | sum(start=10) }}
{{ xs | reverse | list }}|{{ 'añb' | reverse }}|{{ 'añb' | list }}|{{ d | list }}|{{ (1, 2) | list }}
{{ xs | map('string') | list }}|{{ words | map('upper') | join(' ') }}|{{ people | map(attribute='nick', default='-') | list }}|{{ people | map(attribute='tags.0') | list }}|{{ words | map('replace', 'p', 'q') | list }}
{{ xs | select('odd') | list }}|{{ xs | reject('odd') | list }}|{{ [0, 1, '', 'a', none] | select | list }}|{{ xs | select('gt', 1) | list }}|{{ xs | select('in', [1, 2]) | list }}|{{ [0, 1] | reject | list }}
{{ people | selectattr('age', 'equalto', 31) | map(attribute='name') | list }}|{{ people | selectattr('tags') | list | length }}|{{ people | rejectattr('tags', 'defined') | map(attribute='name') | list }}|{{ people | selectattr('age', '>', 30) | list | length }}
{{ people | selectattr('name', '==', 'Ann') | list | length }}|{{ people | selectattr('name', 'ne', 'Ann') | list | length }}
{{ d | items | list }}|{{ missing | items | list }}|{{ '5' | int + 1 }}|{{ '5.9' | int }}|{{ 'x' | int }}|{{ 'x' | int(3) }}|{{ 5.9 | int }}|{{ 'ff' | int(base=16) }}|{{ ' 12 ' | int }}|{{ true | int }}|{{ none | int }}
{{ '2.5' | float }}|{{ 'x' | float }}|{{ 3 | float }}|{{ 'x' | float(1.5) }}|{{ '1e3' | float }}|{{ '-inf' | float }}
{{ 2.5 | round }}|{{ 3.5 | round }}|{{ 2.567 | round(2) }}|{{ 2.1 | round(method='ceil') }}|{{ 2.9 | round(0, 'floor') }}|{{ 42.55 | round(1) }}|{{ 7 | round }}|{{ 1234.5 | round(-2) }}|{{ 2.675 | round(2) }}
{{ text | indent }}|{{ 'a\nb\n\nc' | indent(2) }}|{{ 'a\nb\n\nc' | indent(2, true) }}|{{ 'a\nb\n\nc' | indent(2, blank=true) }}|{{ 'a\nb' | indent('> ') }}
{{ d | tojson }}|{{ s | tojson }}|{{ quote | tojson }}|{{ [1, 2.0, 1e22, none, true, '<&>\''] | tojson }}|{{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }}|{{ (1, 2) | tojson }}
{{ d | tojson(indent=2) }}|{{ [] | tojson(indent=2) }}|{{ {'b': {}, 'a': [[]]} | tojson(indent=4) }}|{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}|{{ [1, {'a': 2}] | tojson(separators=(',', ':')) }}|{{ s | tojson(ensure_ascii=true) }}|{{ '🦊' | tojson(true) }}
{{ missing | tojson }}
{{ '%s is %d, %r %%' | format('x', 5.7, 'y') }}|{{ '%s-%s' % (1, 2) }}|{{ '%s' % 'a' }}|{{ '%f' % 1.5 }}
{{ '%s' | format }}
{{ s | string }}|{{ 5 | string ~ 1 }}|{{ s | safe }}|{{ xs | count }}
{{ 5 | length }}
{{ s.strip() }}|{{ text.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ text.lstrip() }}|{{ text.rstrip() }}|{{ '\n\na\n'.strip('\n') }}|{{ 'abc'.rstrip('bc') }}|{{ 'é.é'.strip('é') }}
{{ 'a,b,c'.split(',') }}|{{ ' a  b c '.split() }}|{{ 'a,b,c'.split(',', 1) }}|{{ ' a  b c '.split(none, 1) }}|{{ 'a--b'.split('--')[-1] }}|{{ ''.split(',') }}|{{ ''.split() }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ 'a b'.split(' ', maxsplit=1) }}
{{ 'x'.split('') }}
{{ 'a\nb\r\nc\n'.splitlines() }}|{{ 'a\n\nb'.splitlines(true) }}|{{ 'k=v=w'.partition('=') }}|{{ 'k=v=w'.rpartition('=') }}|{{ 'kv'.partition('=') }}|{{ '-'.join(words) }}
{{ '-'.join(xs) }}
{{ s.startswith('He') }}|{{ s.endswith(('x', 'ld')) }}|{{ s.find('l') }}|{{ s.rfind('l') }}|{{ s.find('zz') }}|{{ 'añb'.find('b') }}|{{ s.index('W') }}|{{ xs.index(2) }}|{{ s.count('l') }}|{{ xs.count(1) }}|{{ 'aaa'.count('aa') }}|{{ 'ab'.count('') }}
{{ s.index('zz') }}
{{ s.replace('l', 'L') }}|{{ s.replace('l', 'L', 1) }}|{{ 'prefix-x'.removeprefix('prefix-') }}|{{ 'x.txt'.removesuffix('.txt') }}
{{ '{} and {}'.format(1, 'b') }}|{{ '{1}{0}'.format('a', 'b') }}|{{ '{x}{{}}'.format(x=2) }}
{{ '{}'.format() }}
{{ s.upper() }}|{{ s.lower() }}|{{ 'aB'.capitalize() }}|{{ "they're ok x1y".title() }}|{{ 'aB'.swapcase() }}|{{ '12'.isdigit() }}|{{ ''.isdigit() }}|{{ 'aé'.isalpha() }}|{{ 'a1'.isalnum() }}|{{ ' \t'.isspace() }}|{{ 'A1'.isupper() }}|{{ 'a1'.islower() }}
{{ d.get('b') }}|{{ d.get('q') }}|{{ d.get('q', 'z') }}|{{ d.keys() | list }}|{{ d.values() | list }}|{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{{ d.keys() - ['b', 'a', 'k-x'] }}|{{ d.keys() - d }}|{{ (d.keys() - ['b']) | sort }}|{{ (d - d.keys()) | length }}|{{ ([1, 2] - {1: 2}.keys()) }}|{{ 'ab' - d.keys() }}|{{ (d.keys() - missing) | sort }}
{{ ((d.keys() - ['b']) - (d.keys() - ['b', 'a'])) }}|{{ (d.keys() - d).union(xs[:1]) }}|{{ (d.keys() - d).union('a', 'a') }}|{{ (d.keys() - 'b').intersection(['a', 1]) }}|{{ (d.keys() - 'b').difference('a') | sort }}|{{ (d.keys() - 'b').symmetric_difference(['a', 'items']) }}
{{ (d.keys() - 'b').issubset(d) }}|{{ (d.keys() - 'b').issuperset(['a']) }}|{{ (d.keys() - 'b').isdisjoint('b') }}|{{ (d.keys() - 'b') < d.keys() }}|{{ (d.keys() - []) == d.keys() }}|{{ 'a' in d.keys() - 'b' }}|{{ (d.keys() - 'b') is sequence }}|{{ (d.keys() - 'b')[0] is defined }}
{{ (d.keys() - 'b').add('b') }}
{{ (d.keys() - 'b') - ['a'] }}
{{ d.values() - ['a'] }}
{{ d.keys() - [[1]] }}
{{ d.items() - [] }}
{{ d.keys() - 1 }}
{{ (d.keys() - d) | tojson }}
{{ {(d.keys() - d): 1} }}
{{ [1] in d.keys() - d }}
{{ xs.append(4) }}
{{ 'x' if no else 'y' }}{% if no %}{{ xs.append(4) }}{% endif %}
{{ none | select | list }}|{{ none | map('upper') | list }}|{{ 0 | rejectattr('x') | list }}|{% if [] | map('upper') %}true{% endif %}|{% if xs | select('gt', 9) %}true{% endif %}|{% if [] | list %}true{% endif %}|{% if {} | items %}true{% endif %}|{% if {}.items() %}true{% endif %}
{{ (xs | map('string'))[0] }}|{{ xs | map('string') is sequence }}|{{ xs | map('string') is iterable }}|{{ xs | map('string') | first }}|{{ 3 in xs | select }}
{{ xs | map('string') | length }}
{{ xs | select | tojson }}
{{ (xs | select)[1:] }}
{{ d.update({'x': 1}) }}
{{ d.pop('b') }}
{{ 5.x }}
{{ n is number }}|{{ n is integer }}|{{ f is float }}|{{ yes is number }}|{{ yes is integer }}|{{ yes is boolean }}|{{ s is string }}|{{ d is mapping }}|{{ xs is sequence }}|{{ s is sequence }}|{{ d is sequence }}|{{ n is sequence }}|{{ xs is iterable }}|{{ n is iterable }}|{{ missing is iterable }}|{{ missing is sequence }}
{{ nothing is none }}|{{ missing is none }}|{{ n is not none }}|{{ n is odd }}|{{ n is even }}|{{ n is divisibleby 7 }}|{{ n is divisibleby(2) }}|{{ n is in xs }}|{{ 1 is in xs }}|{{ n is eq 7 }}|{{ n is sameas 7 }}|{{ yes is true }}|{{ 1 is true }}|{{ no is false }}|{{ 'A' is upper }}|{{ 'a' is lower }}|{{ n is lt 8 }}|{{ n is ge(7) }}|{{ n is ne 7 }}
{{ range is callable }}|{{ s is callable }}|{{ strftime_now is defined }}|{{ raise_exception is defined }}|{{ foo is defined and foo }}|{{ not foo is defined }}|{{ n is defined and n is not string or no }}
{{ 'x' if n is defined else 'y' }}|{% if n is number and n > 3 %}ok{% endif %}
{% if n > 10 %}a{% elif n > 5 %}b{% else %}c{% endif %}
{% for x in xs %}{{ loop.index }}/{{ loop.length }}:{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}
{% for x in xs %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.depth0 }}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }};{% endfor %}
{% for x in xs if x > 1 %}{{ loop.index }}{{ x }}{{ loop.last }}{% else %}none{% endfor %}|{% for x in xs if x > 9 %}{{ x }}{% else %}none{% endfor %}|{% for x in missing %}x{% else %}empty{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %}|{% for (a, b) in [(1, 2)] %}{{ a + b }}{% endfor %}|{% for k in d %}{{ k }} {% endfor %}|{% for c in 'añ' %}[{{ c }}]{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}|{{ range(3) | list }}|{{ range(2, 8, 3) | list }}|{{ range(3, 0, -1) | list }}
{% for x in range(1000000) %}{% endfor %}
{% break %}
{% for x in xs %}{% for y in xs %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }}{% endfor %}
{% set x = 1 %}{% for i in xs %}{% set x = i %}{{ x }}{% endfor %}{{ x }}|{% set ns = namespace(v=0) %}{% for i in xs %}{% set ns.v = ns.v + i %}{% endfor %}{{ ns.v }}|{% if yes %}{% set x = 5 %}{% endif %}{{ x }}
{% for i in xs %}{% if loop.first %}{% set q = 'seen' %}{% endif %}{{ q }}.{% endfor %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}|{% set t = 1, 2 %}{{ t }}|{% set block %}in {{ n }}{% endset %}[{{ block }}]|{% set up | upper %}abc{% endset %}{{ up }}|{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a + ns.b }}{{ ns.c is defined }}
{% set d.b = 3 %}
{% set q.b = 3 %}
{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c=4) }}{{ m(b=1, a=0) }}{{ m() }}|{{ m(1) | upper }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}
{% macro fact(k) %}{% if k < 2 %}1{% else %}{{ k * (fact(k - 1) | int) }}{% endif %}{% endmacro %}{{ fact(10) }}
{% macro outer() %}{{ later }}{% endmacro %}{% set later = 'L' %}{{ outer() }}|{% macro w() %}<{{ caller() }}>{% endmacro %}{% call w() %}body {{ n }}{% endcall %}|{% macro e(xs) %}{% for x in xs %}{{ caller(x) }},{% endfor %}{% endmacro %}{% call(y) e([1, 2]) %}{{ y * 2 }}{% endcall %}
{% filter upper %}abc {{ s }}{% endfilter %}|{% filter replace('a', 'b') | trim %} aaa {% endfilter %}|{% with a = 1, b = n %}{{ a + b }}{% endwith %}{{ a is defined }}|{% generation %}g{{ n }}{% endgeneration %}
{% raw %}{{ not }} {% if %}{% endraw %}|{# comment {{ x }} #}|{{ '{{' }}|{{ '%}' }}
{{ {'a': {'b': [1, {'c': 2}]}}['a']['b'][1]['c'] }}|{{ [[1, 2], [3]][0][1] }}|{{ ({'x': 1}).x }}|{{ 'a'.upper().lower() }}|{{ xs[xs[1]] }}|{{ (xs | first) + 1 }}
{{ dict(a=1, b='x') }}|{{ dict({'q': 1}, r=2).r }}|{{ namespace(a=1).a }}
{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %y %p %I %%') }}
{{ raise_exception('no') }}
{{ s | nofilter }}
{{ s is notest }}
{{ nofunction() }}
{% zap %}
{{ 7 | 8 }}
{{ 'q'|shout }}
{% for x in y %}
{% if x %}
{{ x
{{ 'x }}
{{ ) }}
{{ (1 }}
{{ [1, 2 }}
{{ 1 + }}
{{ a b }}
{{ }}
{% if %}{% endif %}
{% endif %}
{% if x %}{% endfor %}
{% set %}
{% set 1 = 2 %}
{# unclosed
{% raw %} unclosed
{{ s | replace('a') }}
{{ s | upper(1) }}
{{ s | default(nope=1) }}
{{ [x for x in xs] }}
{{ 'a' is }}
{{ x.'a' }}
{% macro m( %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% else %}
{{ 1 if }}
{{ not }}
{{ @ }}
{{ s.strip( }}
{% for in xs %}{% endfor %}
{% include 'x' %}
"""

# Line ends matter here.
MULTI = [
    "  {% if yes %}  \n    line\n  {% endif %}  \ntail\n", "a {%- if yes -%}  b  {%- endif -%}  c", "a {%+ if yes %} b{% endif +%}\nc",
    "  {%+ if yes %}x{% endif %}\n\ny", "{{- ' x ' -}}   y {{ 'z' }}\n\n", "{% for x in xs -%}\n  {{ x }}\n{%- endfor %}|",
    "{% for x in xs %}\n  {{ x }}\n{% endfor %}|", "x\n  {# c #}\n  y {# d #} \nz", "text   \n   {%- set q = 1 %}\n\n  A{% if yes %}\n\nB{% endif %}\n",
    "{% raw -%}  keep  {%- endraw %} end", "  {% raw %}  keep\n  {% endraw %}\nend", "a\r\nb\rc\r\n{{ 'x\r\ny' }}", "\n\n", "", "\n", "{{ n }}\n",
    "{{ n }}\n\n", "  {{ n }}", "  {{ n }}\n  {% set a = 1 %}", "{% set a = 1 %}  \n  {% set b = 2 %}\n{{ a }}", "{#- a -#}  x", "x  {#- a #}\ny",
    "{%- for m in people %}\n    {%- if loop.first %}\n        {{- 'F' }}\n    {%- endif %}\n    {{- m.name + '\\n' }}\n{%- endfor %}\n",
    "\t{% if yes %}\n\tx\n\t{% endif %}", "a\n \u00a0{% if yes %}b{% endif %}", "{{ \"multi\nline\" }}", "{{ n\n}}\n{%\nif yes\n%}\ny{% endif %}",
    "{% if yes %}a{% endif %}\nb{{ n }}\nc{# x #}\nd", "line\n   {%- if yes +%}\n x{%- endif %}", "{{'a'}}{{'b'}}\n{{'c'}}", "{ { } } {x} {", "{{ '}}' }}{{ '%}' }}",
    "{{ {'a': {'b': 1}} }}", "{% set x = {'a': {}} %}{{ x }}", "á{{ n }}ñ{% if yes %}🦊{% endif %}", "{% raw %}\n{{ x }}\n{% endraw %}\ny",
    "{% set q %}\n  a\n{% endset %}\n[{{ q }}]", "{% macro m() %}\n  a\n{% endmacro %}\n[{{ m() }}]", "{% macro m() -%}\n  a\n{%- endmacro %}\n[{{ m() }}]",
]


def compile_template(source):
    template = _compile_jinja_template.__wrapped__(source) if hasattr(_compile_jinja_template, "__wrapped__") else _compile_jinja_template(source)
    template.globals["strftime_now"] = lambda fmt: NOW.strftime(fmt)
    return template


def render(source, context):
    try:
        return compile_template(source).render(**context)
    except Exception:  # jinja2's own and Python's
        return None


def chat(template, messages, tools, tokens, generation):
    context = {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": generation}
    if tokens[0]:
        context["bos_token"] = tokens[0]
    if tokens[1]:
        context["eos_token"] = tokens[1]
    return render(template, context)


def main():
    chats = []
    for path in sorted((HERE / "data").glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        tokens = TOKENS.get(path.stem, LLAMA)
        for tools, group in ((None, CONVERSATIONS), ([WEATHER, TIME], WITH_TOOLS)):
            for name, messages in group.items():
                plain = chat(source, messages, tools, tokens, False)
                prompted = chat(source, messages, tools, tokens, True)
                if plain is not None and prompted is not None and prompted.startswith(plain):
                    prompted = {"suffix": prompted[len(plain):]}
                chats.append({"template": path.stem, "name": name, "plain": plain, "prompted": prompted})
    lines = SNIPPETS.strip("\n").split("\n")
    snippets = [[source, render(source, CONTEXT)] for source in lines + MULTI]
    out = {
        "tokens": {name: TOKENS.get(name, LLAMA) for name in sorted({c["template"] for c in chats})},
        "conversations": {**CONVERSATIONS, **WITH_TOOLS},
        "with_tools": list(WITH_TOOLS),
        "tools": [WEATHER, TIME],
        "context": CONTEXT,
        "chats": chats,
        "snippets": snippets,
    }
    with open(HERE / "goldens.json", "w", encoding="utf-8") as f:
        f.write("{\n")
        for i, (key, value) in enumerate(out.items()):
            f.write(json.dumps(key) + ": ")
            if isinstance(value, list):
                f.write("[\n" + ",\n".join(json.dumps(v, ensure_ascii=False) for v in value) + "\n]")
            else:
                f.write(json.dumps(value, ensure_ascii=False))
            f.write(",\n" if i + 1 < len(out) else "\n}\n")
    refused = sum(1 for c in chats if c["plain"] is None)
    print(f"{len(chats)} chats ({refused} refused), {len(snippets)} snippets ({sum(r is None for _, r in snippets)} refused)")


if __name__ == "__main__":
    main()
