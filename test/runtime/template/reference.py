"""What the scripts here share: jinja2 set up by transformers, and the driver.

Needs the packages transformers and jinja2.
"""
import datetime
import functools
import json
import os
import subprocess

from transformers.utils import chat_template_utils

CONTINUE = "continue_final_message"
NOW = datetime.datetime(2024, 7, 9, 5, 6, 7)  # fixedNow() of TemplateDriver.cpp


@functools.lru_cache(maxsize=256)
def compile_template(source):
    template = chat_template_utils._cached_compile_jinja_template(source)
    template.globals["strftime_now"] = lambda fmt: NOW.strftime(fmt)
    return template


chat_template_utils._compile_jinja_template = compile_template  # for render_jinja_template: with the clock above


def render(source, context):
    """(text, None), or (None, "Type: message") where the reference refuses.

    A variable CONTINUE is no variable but apply_chat_template's argument continue_final_message.
    """
    try:
        if CONTINUE in context:
            variables = {name: value for name, value in context.items() if name not in ("messages", "tools")}
            (text,), _ = chat_template_utils.render_jinja_template([context["messages"]], tools=context.get("tools"), chat_template=source, **variables)
        else:
            text = compile_template(source).render(**context)
        text.encode("utf-8")  # a lone surrogate is no text that a model could get
        return text, None
    except Exception as error:  # jinja2's own and Python's
        return None, f"{type(error).__name__}: {error}"


def case_line(case):
    context = dict(case["context"])
    line = {"template": case["template"], "continue": context.pop(CONTINUE, "")}
    return json.dumps({**line, "context_text": json.dumps(context)}) + "\n"  # as text it keeps numbers exact


def drive(driver, cases):
    """Answers of the C++ engine to `cases`, see TemplateDriver.cpp."""
    lines = "".join(map(case_line, cases))
    done = subprocess.run([driver], input=lines.encode(), stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"})
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(answers) != len(cases):
        raise SystemExit(f"{driver} ended with {done.returncode} after {len(answers)} of {len(cases)} cases; the next one is\n"
                         + json.dumps(cases[min(len(answers), len(cases) - 1)], indent=1))
    return answers
