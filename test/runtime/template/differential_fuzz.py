#!/usr/bin/env python3
"""Random templates, rendered by this engine and by jinja2 within transformers.

    python differential_fuzz.py BUILD/test/runtime/template/llmc-template-driver [--count 10000] [--seed 1]

needs the packages transformers and jinja2. A grammar makes expressions, filters
with arguments, methods, formats, loops, macros, scopes and white space control over
a fixed context. Both must give the same text, or both refuse. Not compared: texts
with an address in memory or a complex number (which this engine refuses), what changes
with jinja2's optimizer (depends_on_folding), and what the reference takes too long for. The order of a set of strings changes from one run of
Python to the next: where the reference itself does, the same characters count as equal.
"""
import argparse
import functools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys

import jinja2.nodes

import reference

CONTEXT = {
    "s": "Hello, Wörld", "t": "  a b\tc\n\nd  ", "e": "", "u": "ǅ ß İıΣΑΣ ﬁ ２ ² 中文 🦊", "h": "<b>&'\"</b>", "n": 7, "z": 0, "neg": -3, "big": 2**70, "f": 2.5, "g": -0.0,
    "small": 1e-7, "huge": 1e22, "yes": True, "no": False, "nothing": None, "xs": [3, 1, 2], "ys": [], "words": ["pear", "Apple", "fig", "apple"],
    "mixed": [1, "a", None, 2.0, True, [1], {"k": 1}], "d": {"b": 1, "a": [1, 2.0, None], "items": "shadowed", "k-x": "é", "1": 1}, "ed": {},
    "people": [{"name": "Ann", "age": 31, "tags": ["x", "y"]}, {"name": "bob", "age": 25, "tags": []}, {"name": "Cy", "age": 31, "tags": ["z"], "boss": {"name": "Ann"}}],
    "messages": [{"role": "user", "content": "Hi <there>"}, {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.0, "y": "é"}}}]}],
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}, {"v": 5, "c": []}],
}
ADDRESS = re.compile(r" at 0x[0-9a-f]+>|<class |<function |<jinja2|<bound method|reverse_?iterator")


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names = []  # assigned by the template
        self.macros = []
        self.loops = 0
        self.inFunction = False

    def pick(self, *options):
        return self.r.choice(options)

    def maybe(self, p):
        return self.r.random() < p

    # Expressions ---------------------------------------------------------------

    def number(self):
        return self.pick("0", "1", "2", "3", "7", "-1", "-2", "10", "1.5", "2.0", "1e3", "0.1", "100", "1_000", "0x1f", "9223372036854775807", "n", "z", "neg", "f", "g", "big", "huge", "small", "yes", "loop.index" if self.loops else "5", "12345.678")

    def power(self, base):
        """Python would take for ever with large exponents, and no signal stops it."""
        return "(" + base + " ** " + self.pick("0", "1", "2", "3", "-1", "-2", "10", "0.5", "1.5", "n", "z", "neg", "f", "yes", "s", "xs") + ")"

    def string(self):
        return self.pick("'a'", '"b c"', "''", "'x,y,z'", "'a\\nb'", "'<&>'", "'é'", "'it\\'s'", "'  pad '", "'%s'", "'-'", "'ab' 'cd'", "s", "t", "e", "u", "h", "'A'", "'l'", "'1'", "' 12 '", "'3.7'", "'one two three four'", "(h|e)", "('<i>'|safe)")

    def items(self, depth):
        return self.pick("xs", "ys", "words", "people", "mixed", "messages", "[1, 2, 3]", "['b', 'a']", "(1, 2)", "range(4)", "range(5, 0, -2)", "d.keys()", "d.items()", self.set_of_keys(), "d.values()", "'abc'", "d", "ed",
                         "xs|map('string')" if depth <= 0 else self.filtered_list(depth - 1), "[" + ", ".join(self.expr(depth - 2) for _ in range(self.r.randint(0, 3))) + "]")

    def set_of_keys(self):
        made = "(" + self.pick("d.keys()", "ed.keys()", "{'x': 1, 'y': 2}.keys()", "d") + " - " + self.pick("d.keys()", "{'b': 1, 'a': 2}.keys()", "ed.keys()", "['a', 'b', 'k-x', '1']", "words", "'ab1'", "d.items()", "missing", "n") + ")"
        other = self.pick("['a', 'items']", "d", "words", "(d.keys() - ['a'])", "ed.items()", "n")
        return made + self.pick("", "", "", "|length", "|sort", "|join(',')|length", "|last", "|reverse", "[0]", "|tojson", ".copy()", ".union(%s)|sort" % other, ".difference(%s)|sort" % other, ".intersection(%s)|sort" % other,
                                ".symmetric_difference(%s)|sort" % other, ".issubset(%s)" % other, ".issuperset(%s)" % other, ".isdisjoint(%s)" % other, " == %s" % other, " <= %s" % other, " - %s" % other, ".add(1)", ".pop()", "|string|length", ".union()")

    def filtered_list(self, depth):
        src = self.items(depth)
        return src + self.pick("|sort", "|sort(reverse=true)", "|list", "|reverse", "|reverse|list", "|unique|list", "|map('string')|list", "|map('upper')|list", "|select('string')|list", "|reject('none')|list", "|select|list", "|batch(2)|list",
                               "|slice(2)|list", "|batch(2, 'x')|list", "|slice(3, 0)|list", "|map(attribute='name')|list", "|selectattr('age')|list", "|selectattr('age', 'gt', 26)|list", "|rejectattr('tags')|map(attribute='name')|list", "|map(attribute='boss.name', default='-')|list",
                               "|sort(attribute='age')", "|sort(attribute='age,name')", "|sort(case_sensitive=true)", "|groupby('age')", "|groupby('name')|map('first')|list", "|dictsort", "|dictsort(by='value')", "|items|list", "|map('length')|list", "[::-1]", "[1:]", "[:-1]", "[::2]", "[-2:]",
                               "|map('default', 'q')|list", "|select('in', [1, 2, 'a'])|list", "|map('tojson')|list", "|unique(attribute='age')|list", "|map(attribute=0)|list", "|select('>', 1)|list", "|map('int', 5)|list", "|map('replace', 'a', 'b')|list", "|select('odd')|list", "|map('trim')|map('title')|list")

    def atom(self, depth):
        k = self.r.random()
        if k < 0.25:
            return self.number()
        if k < 0.5:
            return self.string()
        if k < 0.62 and self.names:
            return self.pick(*self.names)
        if k < 0.8:
            return self.items(depth)
        return self.pick("nothing", "true", "false", "none", "missing", "d.b", "d['k-x']", "d.a[1]", "d.missing", "people[0].name", "people[1]['age']", "xs[0]", "xs[-1]", "xs[9]", "s[1]", "s[-3:]", "messages[1].tool_calls[0].function.arguments", "d.get('b')", "d.get('q', 3)", "ns.x",
                         "loop.first" if self.loops else "yes", "loop.last" if self.loops else "no", "loop.length" if self.loops else "1", "loop.previtem" if self.loops else "n", "loop.nextitem" if self.loops else "n", "loop.cycle('a', 'b')" if self.loops else "n", "loop.changed(n)" if self.loops else "n", "loop.revindex" if self.loops else "n",
                         "dict(a=1, b='x')", "{'a': 1, 2: 'b'}", "{}", "(1,)", "()", "namespace(a=1)", "cycler('a', 'b').next()", "d|length", "n.real", "xs.count(1)")

    def typed(self, kind, depth):
        """An expression that mostly has values of a kind, so that most work."""
        if self.maybe(0.06):
            return self.atom(depth)
        deep = depth > 0 and self.maybe(0.5)
        if kind == "number":
            if deep:
                if self.maybe(0.03):
                    return self.power(self.typed("number", depth - 1))
                return self.pick("(%s %s %s)" % (self.typed("number", depth - 1), self.pick("+", "-", "*", "/", "//", "%"), self.number()), "%s|length" % self.typed("list", depth - 1), "(%s)|abs" % self.typed("number", depth - 1),
                                 "(%s)|int" % self.typed("string", depth - 1), "(%s)|round(%s)" % (self.typed("number", depth - 1), self.pick("0", "1", "2", "-1")), "%s.count('a')" % self.typed("string", depth - 1), "(%s)|float" % self.typed("number", depth - 1))
            return self.number()
        if kind == "string":
            if deep:
                return self.pick("(%s).%s" % (self.typed("string", depth - 1), self.method(depth)), "(%s)|%s" % (self.typed("string", depth - 1), self.filter(depth)), "(%s ~ %s)" % (self.typed("string", depth - 1), self.typed("number", depth - 1)), "(%s + %s)" % (self.string(), self.typed("string", depth - 1)),
                                 "(%s)|join(%s)" % (self.typed("list", depth - 1), self.string()), "(%s)|tojson" % self.items(0), self.formatted(depth), "(%s)|string" % self.typed("number", depth - 1), "(%s)[%s]" % (self.typed("string", depth - 1), self.pick("0", "-1", "1:", ":3", "::-1", "1:-1", "9", "::2")))
            return self.string()
        if deep:
            return self.pick(self.filtered_list(depth - 1), "(%s).split(%s)" % (self.typed("string", depth - 1), self.pick("", "','", "' '")), "(%s + %s)" % (self.pick("xs", "words", "[1]"), self.pick("ys", "words", "xs|list")), "(%s)|list" % self.typed("string", depth - 1))
        return self.items(depth)

    def expr(self, depth):
        if depth <= 0 or self.maybe(0.1):
            return self.atom(depth)
        k = self.r.random()
        if k < 0.2:
            return self.typed("number", depth)
        if k < 0.5:
            return self.typed("string", depth)
        if k < 0.65:
            return self.typed("list", depth)
        sub = lambda: self.expr(depth - 1)
        if k < 0.7:
            kind = self.pick("number", "string", "list")
            return "(%s %s %s)" % (self.typed(kind, depth - 1), self.pick("==", "!=", "<", "<=", ">", ">="), self.typed(kind, depth - 1)) + self.pick("", "", " and " + self.atom(0))
        if k < 0.74:
            return "(%s %s %s)" % (self.atom(0), self.pick("in", "not in"), self.typed(self.pick("list", "string"), depth - 1))
        if k < 0.79:
            return "(" + sub() + " " + self.pick("and", "or") + " " + sub() + ")"
        if k < 0.81:
            return "(not " + sub() + ")"
        if k < 0.86:
            return "(" + sub() + " if " + sub() + (" else " + sub() if self.maybe(0.8) else "") + ")"
        if k < 0.92:
            return "(" + sub() + " is " + self.pick("", "not ") + self.test() + ")"
        if k < 0.94:
            return "(" + sub() + ")|" + self.filter(depth)
        if k < 0.96:
            return "(" + sub() + ")." + self.method(depth)
        if k < 0.98 and self.macros:
            return self.pick(*self.macros) + "(" + ", ".join(sub() for _ in range(self.r.randint(0, 2))) + ")"
        if self.maybe(0.1):
            return self.power(sub())
        return "(" + sub() + " " + self.pick("+", "-", "*", "/", "//", "%", "~", "<") + " " + sub() + ")"

    def test(self):
        return self.pick("defined", "undefined", "none", "string", "number", "integer", "float", "mapping", "sequence", "iterable", "boolean", "true", "false", "odd", "even", "divisibleby(3)", "divisibleby 2", "upper", "lower", "in xs", "in [1, 'a']", "eq 1", "ne('a')", "gt 1", "lt 2", "ge 1",
                         "le(3)", "callable", "escaped", "sameas none", "sameas true", "equalto 7", "filter", "test")

    def filter(self, depth):
        a = lambda: self.expr(min(depth - 2, 1))
        return self.pick("upper", "lower", "title", "capitalize", "trim", "trim('a ')", "length", "count", "string", "int", "int(5)", "int(0, 16)", "float", "float(1.5)", "abs", "round", "round(1)", "round(2, 'floor')", "round(-1)", "round(1, 'ceil')", "tojson", "tojson(indent=2)", "tojson(sort_keys=true)", "tojson(ensure_ascii=true)",
                         "tojson(separators=(',', ':'))", "tojson(indent=1, sort_keys=true)", "join", "join(', ')", "join('-', attribute='name')", "first", "last", "list", "reverse", "sort", "unique|list", "min", "max", "sum", "sum(start=1)", "sum('age')", "sum(attribute='age', start=10)", "default('q')", "default('q', true)", "d(1, boolean=true)",
                         "replace('a', 'bb')", "replace('l', '', 1)", "replace(1, 2)", "indent", "indent(2)", "indent(2, true)", "indent(3, blank=true)", "indent('> ', first=true)", "wordcount", "wordwrap(5)", "wordwrap(8, false)", "wordwrap(3, wrapstring='|')", "center(9)", "center(12)|trim", "truncate(8)", "truncate(5, true)", "truncate(6, false, '..', 0)",
                         "escape", "e", "safe", "forceescape", "urlencode", "striptags", "xmlattr", "filesizeformat", "filesizeformat(true)", "format(1, 'a')", "format(x=1)", "batch(2)|list", "slice(2)|list", "map('int')|list", "select('number')|list", "groupby('age')|list", "dictsort", "dictsort(true, 'value', reverse=true)", "items|list", "attr('real')", "attr('name')",
                         "map(attribute='x')|list", "min(attribute='age')", "max(case_sensitive=true)", "default(" + a() + ")", "replace(" + a() + ", " + a() + ")", "join(" + a() + ")", "round(" + self.number() + ")", "batch(" + self.number() + ")|list", "truncate(" + self.number() + ")", "indent(" + a() + ")")

    def method(self, depth):
        a = lambda: self.string() if self.maybe(0.8) else self.expr(min(depth - 2, 1))
        return self.pick("upper()", "lower()", "title()", "capitalize()", "swapcase()", "casefold()", "strip()", "lstrip()", "rstrip()", "strip('a ')", "split()", "split(',')", "split(' ', 1)", "rsplit(' ', 1)", "rsplit(none, 1)", "split(none, 1)", "rsplit()", "split(maxsplit=1)", "splitlines()", "splitlines(true)", "join(words)", "join(['a', 'b'])",
                         "partition(',')", "rpartition(' ')", "startswith('H')", "endswith(('d', 'x'))", "startswith('e', 1)", "find('l')", "rfind('l')", "find('l', 4)", "find('l', -3, -1)", "count('l')", "count('')", "index('a')", "replace('l', 'L')", "replace('', '-')", "replace('l', 'L', 1)", "removeprefix('He')", "removesuffix('ld')", "zfill(8)", "center(11, '*')",
                         "ljust(9)", "rjust(9, '.')", "expandtabs(4)", "isdigit()", "isalpha()", "isalnum()", "isspace()", "isupper()", "islower()", "istitle()", "isnumeric()", "isdecimal()", "isascii()", "isprintable()", "items()|list", "keys()|list", "values()|list", "get('a')", "get('zz', 1)", "copy()", "append(1)", "pop()", "upper", "x.y", "nothing",
                         "split(" + a() + ")", "strip(" + a() + ")", "find(" + a() + ")", "replace(" + a() + ", " + a() + ")", "count(" + a() + ")", "startswith(" + a() + ")", "join(" + a() + ")", "center(" + self.number() + ")", "index(" + a() + ")", "bit_length()", "is_integer()", "as_integer_ratio()", "striptags()")

    def formatted(self, depth):
        a = lambda: self.expr(min(depth - 1, 1))
        if self.maybe(0.5):
            spec = "%" + self.pick("", "-", "0", "+", " ", "#", "+0", "-#") + self.pick("", "5", "12", "3") + self.pick("", ".2", ".0", ".5") + self.pick(*"sdifrxXoeEgGacuF")
            other = self.pick("", "%%", " %s", " x")
            value = a() if "%s" not in other else "(" + a() + ", " + a() + ")"
            return "('" + spec + other + "' % " + self.pick("(%s,)" % a() if "%s" not in other else value, value) + ")"
        align = self.pick("", "<", ">", "^", "=", "*^", "é<", "0>")
        spec = align + self.pick("", "", "+", "-", " ") + self.pick("", "", "#") + self.pick("", "", "0") + self.pick("", "6", "12", "20") + self.pick("", "", ",", "_") + self.pick("", "", ".2", ".0", ".4") + self.pick("", "", "d", "s", "f", "e", "g", "x", "X", "b", "o", "%", "G", "c", "n")
        head = self.pick("{", "{0", "{x", "{0.real", "{0[0]", "{x[name]") + self.pick("", "", "", "!r", "!s", "!a")
        return "('" + self.pick("", "{{", "a") + head + (":" + spec if spec else "") + "}" + self.pick("", "}}", " {}") + "'" + self.pick("", "|safe") + ").format(" + a() + self.pick("", ", " + a()) + ", x=" + a() + ")"

    # Statements ----------------------------------------------------------------

    def text(self):
        return self.pick("text", " ", "\n", "\n\n  ", "a b", "  x\n", "\t", "é", "{ ", "}", "%", "#", "<|im_start|>", "\n    ", "")

    def tag(self, body):
        return "{%" + self.pick("", "", "", "-", "+") + " " + body + " " + self.pick("", "", "", "-", "+") + "%}"

    def out(self, expr):
        return "{{" + self.pick("", "", "", "-", "+" if False else "") + " " + expr + " " + self.pick("", "", "-") + "}}"

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.r.randint(1, 3)))

    def scoped(self, depth):
        """A body whose names are not those of what follows (mostly)."""
        known = list(self.names)
        made = self.body(depth)
        if self.maybe(0.7):
            self.names = known
        return made

    def name(self):
        return self.pick("a", "b", "c", "v", "s", "n", "xs")

    def statement(self, depth):
        k = self.r.random()
        if depth <= 0 or k < 0.2:
            return self.out(self.expr(3)) if self.maybe(0.7) else self.text()
        if k < 0.3:
            return self.text() + self.out(self.expr(2)) + self.text()
        if k < 0.42:
            name = self.name()
            made = self.tag("set " + name + " = " + self.expr(2))
            self.names.append(name)
            return made
        if k < 0.47:
            return self.tag("set ns.x = " + self.expr(2)) + self.out("ns.x")
        if k < 0.57:
            made = self.tag("if " + self.expr(2)) + self.body(depth - 1)
            if self.maybe(0.3):
                made += self.tag("elif " + self.expr(2)) + self.body(depth - 1)
            if self.maybe(0.5):
                made += self.tag("else") + self.body(depth - 1)
            return made + self.tag("endif")
        if k < 0.74:
            return self.loop(depth)
        if k < 0.8:
            return self.macro(depth)
        if k < 0.84:
            name = self.name()
            made = self.tag("set " + name + self.pick("", "", " | upper", " | replace('a', 'b') | trim")) + self.scoped(depth - 1) + self.tag("endset")
            self.names.append(name)
            return made
        if k < 0.88:
            return self.tag("filter " + self.pick("upper", "trim", "indent(2)", "replace('a', 'b')|title", "length")) + self.scoped(depth - 1) + self.tag("endfilter")
        if k < 0.91:
            return self.tag("with " + self.pick("w = 1", "w = n, s = 'q'", "a, b = (1, 2)", "")) + self.scoped(depth - 1) + self.tag("endwith")
        if k < 0.93:
            loops, self.loops = self.loops, 0
            made = self.tag("generation") + self.scoped(depth - 1) + self.tag("endgeneration")
            self.loops = loops
            return made
        if k < 0.95:
            return "{#" + self.pick("", "-") + " note {{ x }} " + self.pick("", "-", "+") + "#}"
        if k < 0.97:
            return self.tag("raw") .replace("+%}", "%}") + self.pick("{{ x }}", " {% if %} ", "\n  a") + self.tag("endraw")
        if self.loops:
            return self.tag("if " + self.pick("loop.index == 2", "loop.first", self.expr(1))) + self.tag(self.pick("break", "continue")) + self.tag("endif")
        return self.tag("set a, b = " + self.pick("1, 2", "xs[:2]", "d.a", "(n, s)")) + self.out("a")

    def loop(self, depth):
        k = self.r.random()
        known = list(self.names)
        if k < 0.12:
            made = self.tag("for item in tree" + self.pick("", " if item.v != 3") + " recursive") + "[" + self.out("item.v") + self.pick("", self.out("loop.depth"), self.out("loop.index")) + self.pick(self.out("loop(item.c)"), self.tag("if item.c") + self.out("loop(item.c)") + self.tag("endif")) + "]" + self.tag("endfor")
            return made
        if k < 0.3:
            head = self.pick("for k, v in d.items()", "for k, v in d|dictsort", "for g, l in people|groupby('age')", "for a, b in [(1, 2), [3, 4]]", "for x, (y, z) in [(1, (2, 3))]", "for k, v in ed|items", "for i, x in [[1, 2], [3]]")
            self.names += ["k", "v"]
        else:
            var = self.pick("x", "x", "item", "n", "s")
            head = "for " + var + " in " + (self.items(2) if self.maybe(0.7) else self.expr(2))
            self.names.append(var)
            if self.maybe(0.2):
                loops, self.loops = self.loops, 0
                head += " if " + self.expr(1)
                self.loops = loops
        self.loops += 1
        made = self.tag(head) + self.body(depth - 1)
        self.loops -= 1
        if self.maybe(0.7):
            self.names = known
        if self.maybe(0.25):
            made += self.tag("else") + self.body(depth - 1)
        return made + self.tag("endfor")

    def macro(self, depth):
        known, loops = list(self.names), self.loops
        self.loops = 0
        name = self.pick("m", "mac", "outer")
        params = self.pick("", "a", "a, b=2", "a='q', b=a", "x, y=n, z=none")
        self.names += ["a", "b"] if "a" in params else ["x", "y"] if params else []
        inner = self.body(depth - 1) + self.pick("", "", self.out("varargs"), self.out("kwargs"), self.tag("if caller") + self.out("caller()") + self.tag("endif"), self.out("caller(1)"))
        made = self.tag("macro " + name + "(" + params + ")") + inner + self.tag("endmacro")
        self.names, self.loops = known, loops
        args = self.pick("", "1", "1, 2", "b=3", "1, y='k'", "*xs", "**{'a': 1}", "1, 2, 3, 4", "1, q=2")
        if self.maybe(0.3):
            self.loops = 0
            made += self.tag("call" + self.pick("", "(p)", "(p, q=1)") + " " + name + "(" + args + ")") + self.scoped(depth - 1) + self.tag("endcall")
            self.loops = loops
        else:
            made += self.out(name + "(" + args + ")")
        if name not in self.macros and self.maybe(0.6):
            self.macros.append(name)
        return made

    def template(self):
        if self.maybe(0.5):  # one construct alone works more often
            return "{% set ns = namespace(x=0, y=[]) %}" + self.pick(self.out(self.expr(self.r.randint(1, 4))), self.statement(2))
        return "{% set ns = namespace(x=0, y=[]) %}" + "".join(self.statement(self.r.randint(1, 3)) for _ in range(self.r.randint(1, 3)))


class TooSlow(Exception):
    pass


def expected(source, seconds=5):
    def stop(*_):
        raise TooSlow

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        text, error = reference.render(source, json.loads(json.dumps(CONTEXT)))
        return text, error, error is not None and error.startswith(("TooSlow", "MemoryError", "RecursionError"))
    except TooSlow:
        return None, None, True
    finally:
        signal.alarm(0)


def constant(node):
    """The value that jinja2's optimizer computes ahead; None: it does not."""
    try:
        return node.as_const()
    except jinja2.nodes.Impossible:
        return None


def depends_on_folding(source):
    """Whether the reference's answer depends on what its optimizer computes ahead: (5)[1:] is undefined or an error, and of -2 ** n
    its Python is -(2 ** n) where -2 is such a constant and n is none."""
    tree = reference.compile_template(source).environment.parse(source)
    for node in tree.find_all((jinja2.nodes.Getitem, jinja2.nodes.Pow)):
        if isinstance(node, jinja2.nodes.Pow):
            base = constant(node.left)
            if isinstance(base, (int, float)) and base < 0 and constant(node.right) is None:
                return True
        elif isinstance(node.arg, jinja2.nodes.Slice) and (value := constant(node.node)) is not None:
            try:
                value[:]
            except Exception:  # whatever Python says of it
                return True
    return False


@functools.cache
def reference_with(seed):
    """A process with other hashes of strings: a template a line in, its text a line out."""
    program = "import json, sys, differential_fuzz as f\nfor line in sys.stdin: print(json.dumps(f.expected(json.loads(line))[0]), flush=True)"
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            cwd=pathlib.Path(__file__).parent, env={**os.environ, "PYTHONHASHSEED": str(seed)})


def order_is_open(source, text, got):
    """Whether the reference prints something else from run to run, and `got` has the characters of `text`."""
    if " - " not in source or got is None or sorted(got) != sorted(text):
        return False
    texts = {text}
    for seed in range(1, 7):
        process = reference_with(seed)
        process.stdin.write(json.dumps(source) + "\n")
        process.stdin.flush()
        texts.add(json.loads(process.stdout.readline()))
    return len(texts) > 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    differing = rendered = refused = left_out = reordered = 0
    for start in range(0, options.count, 500):
        sources = [Maker(f"{options.seed}/{i}").template() for i in range(start, min(start + 500, options.count))]
        answers = reference.drive(options.driver, [{"template": source, "context": CONTEXT} for source in sources])
        for i, (source, answer) in enumerate(zip(sources, answers)):
            text, error, unknown = expected(source)
            # The address may be hidden by what the template does with the text.
            refusal = answer.get("error", "")
            if unknown or (text is not None and (ADDRESS.search(text) or "prints with its address" in refusal or "no complex number" in refusal)):
                left_out += 1
                continue
            rendered += text is not None
            refused += text is None
            if answer.get("text") != text and text is not None and order_is_open(source, text, answer.get("text")):
                reordered += 1
            elif answer.get("text") != text:
                if text is not None and depends_on_folding(source):
                    left_out += 1
                    continue
                differing += 1
                if differing <= options.show:
                    print(f"--- {options.seed}/{start + i}\n{source}\n  reference: {error or json.dumps(text, ensure_ascii=False)}\n  got:       {json.dumps(answer, ensure_ascii=False)}")
    print(f"{options.count} templates: {rendered} rendered, {refused} refused by the reference, {left_out} left out, {reordered} equal but for the order of a set, {differing} differ")
    for seed in range(1, 7):
        reference_with(seed).stdin.close()
    sys.exit(differing != 0)


if __name__ == "__main__":
    main()
