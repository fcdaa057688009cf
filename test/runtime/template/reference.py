"""What the scripts here share: jinja2 set up by transformers, and the driver.

Needs the packages transformers and jinja2.
"""
import datetime
import functools
import json
import os
import subprocess

from transformers.utils.chat_template_utils import _cached_compile_jinja_template

NOW = datetime.datetime(2024, 7, 9, 5, 6, 7)  # fixedNow() of TemplateDriver.cpp


@functools.lru_cache(maxsize=256)
def compile_template(source):
    template = _cached_compile_jinja_template(source)
    template.globals["strftime_now"] = lambda fmt: NOW.strftime(fmt)
    return template


def render(source, context):
    """(text, None), or (None, "Type: message") where the reference refuses."""
    try:
        text = compile_template(source).render(**context)
        text.encode("utf-8")  # a lone surrogate is no text that a model could get
        return text, None
    except Exception as error:  # jinja2's own and Python's
        return None, f"{type(error).__name__}: {error}"


def drive(driver, cases):
    """Answers of the C++ engine to `cases`, see TemplateDriver.cpp."""
    text = lambda case: {"template": case["template"], "context_text": json.dumps(case["context"])}  # keeps numbers exact
    lines = "".join(json.dumps(text(case)) + "\n" for case in cases)
    done = subprocess.run([driver], input=lines.encode(), stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"})
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(answers) != len(cases):
        raise SystemExit(f"{driver} ended with {done.returncode} after {len(answers)} of {len(cases)} cases; the next one is\n"
                         + json.dumps(cases[min(len(answers), len(cases) - 1)], indent=1))
    return answers
