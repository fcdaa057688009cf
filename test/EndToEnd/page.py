#!/usr/bin/env python3
"""The page of `serve` in headless Chromium: page.py EXE CHROMIUM [SCREENSHOTS]. Run by scripts/check-page.sh."""
import os
import sys

from playwright.sync_api import expect, sync_playwright

import common
import serve

QUESTION = "What is the capital of France? Answer in one sentence."
LONG = "Count from one to two hundred, one number a line."


def open_page(browser, server, **options):
    """A page whose errors, and whose wishes for anything but this server, are noted in page.wrong."""
    page = browser.new_context(viewport={"width": 900, "height": 640}, **options).new_page()
    page.wrong = []
    page.on("console", lambda m: page.wrong.append(m.text) if m.type == "error" and "401" not in m.text else None)  # a 401 asks for the key
    page.on("pageerror", lambda e: page.wrong.append(str(e)))
    page.on("request", lambda r: page.wrong.append(r.url) if not r.url.startswith((server.url, "data:,")) else None)
    page.goto(server.url)
    return page


def answer(page, number):
    """The text of an answer that has come to its end."""
    expect(page.locator("#stop")).to_be_disabled(timeout=60000)
    return page.locator("article.assistant p").nth(number).text_content()


def chat(checks, browser, server):
    page = open_page(browser, server)
    expect(page.locator("h1")).to_have_text("smol")
    checks.check("the message has the focus", page.evaluate("document.activeElement.id") == "text")
    page.locator("#settings summary").click()
    page.locator("#system").fill("You are a helpful assistant.")
    page.locator("#temperature").fill("0")
    page.locator("#most").fill("40")
    page.locator("#text").fill(QUESTION)
    page.keyboard.press("Enter")
    text = answer(page, 0)
    checks.check("it answers", "Paris" in text, text)
    speed = page.locator("#speed").text_content()
    checks.check("it shows the time to the first token and the speed", "first token " in speed and " tokens/s, " in speed, speed)
    page.locator("#text").fill("And of Italy?")
    page.keyboard.press("Shift+Enter")
    checks.check("Shift+Enter makes a line", page.locator("#text").input_value().endswith("\n"))
    page.keyboard.press("Enter")
    checks.check("the conversation goes on", answer(page, 1) and page.locator("article").count() == 4)
    page.locator("#clear").click()
    checks.check("a new conversation is empty", page.locator("article").count() == 0)
    page.locator("#text").fill("Repeat exactly: <img src=x onerror=alert(1)><b>bold</b>")
    page.keyboard.press("Enter")
    answer(page, 0)
    checks.check("text is never HTML", page.locator("article img, article b").count() == 0 and "<img" in page.locator("article.user p").text_content())
    checks.check("nothing went wrong, nothing came from elsewhere", page.wrong == [], page.wrong)
    page.context.close()


def stop(checks, browser, server):
    page = open_page(browser, server)
    for name, halt in (("the button", lambda: page.locator("#stop").click()), ("Escape", lambda: page.keyboard.press("Escape"))):
        page.locator("#clear").click()
        page.locator("#text").fill(LONG)
        page.keyboard.press("Enter")
        expect(page.locator("article.assistant p").first).not_to_have_text("", timeout=60000)
        halt()
        text = answer(page, 0)
        checks.check(f"{name} stops an answer, what has come stays", text and server.idle(), len(text))
    checks.check("what is stopped is no error", page.locator("#error").is_hidden() and page.wrong == [], page.wrong)
    page.locator("#most").evaluate("e => e.value = -1")
    page.locator("#text").fill("x")
    page.keyboard.press("Enter")
    expect(page.locator("#error")).to_contain_text("max_tokens: expected a whole number")
    checks.check("a refused question is given back", page.locator("#text").input_value() == "x")
    page.context.close()


def metrics(checks, browser, server):
    page = open_page(browser, server)
    page.locator("#to-metrics").focus()
    page.keyboard.press("Enter")
    tile = page.locator("#tiles div", has_text="Tokens a second").locator("dd")
    expect(tile).not_to_have_text("–", timeout=10000)
    names = page.locator("#tiles dt").all_text_contents()
    checks.check("metrics are shown", "KV cache in use" in names and "First token, 99 %" in names, names)
    page.locator("#metrics summary").click()
    checks.check("and all counters", "llmc_generated_tokens_total" in page.locator("#counters").text_content())
    points = page.locator("#line").get_attribute("points")
    page.wait_for_timeout(2500)
    checks.check("they move on", len(page.locator("#line").get_attribute("points")) > len(points))
    page.locator("#to-chat").click()
    checks.check("and back to the chat", page.locator("#text").is_visible() and page.wrong == [], page.wrong)
    page.context.close()


def keys(checks, browser, exe):
    with serve.Server(exe, "--api-key", "secret", "--model-name", "smol") as server:
        page = open_page(browser, server)
        expect(page.locator("#key-dialog")).to_be_visible()
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#key")).to_have_value("")
        expect(page.locator("#key-dialog")).to_be_visible()
        page.keyboard.type("secret")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("smol")
        page.reload()
        expect(page.locator("h1")).to_have_text("smol")
        checks.check("the key is asked for once", page.locator("#key-dialog").is_hidden())
        page.locator("#text").fill(QUESTION)
        page.keyboard.press("Enter")
        checks.check("and sent with questions", answer(page, 0) and page.wrong == [], page.wrong)
        page.context.close()


def keyboard(checks, browser, server):
    """Everything that can be clicked can be reached with Tab."""
    page = open_page(browser, server)
    page.locator("#settings").evaluate("e => e.open = true")
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    checks.check("Tab goes everywhere", {"to-chat", "to-metrics", "SUMMARY", "system", "temperature", "most", "log", "text", "send", "clear"} <= reached, sorted(reached))
    page.context.close()


def pictures(browser, server, folder):
    os.makedirs(folder, exist_ok=True)
    for scheme in ("light", "dark"):
        page = open_page(browser, server, color_scheme=scheme)
        page.locator("#temperature").evaluate("e => e.value = 0")
        for number, question in enumerate((QUESTION, "What is a compiler?")):
            page.locator("#text").fill(question)
            page.keyboard.press("Enter")
            answer(page, number)
        page.screenshot(path=os.path.join(folder, f"serve-chat-{scheme}.png"))
        page.locator("#to-metrics").click()
        page.wait_for_timeout(6500)
        page.screenshot(path=os.path.join(folder, f"serve-metrics-{scheme}.png"))
        page.context.close()


def main():
    exe, chromium, shots = sys.argv[1:4]
    checks = common.Checks()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with serve.Server(exe, "--model-name", "smol") as server:
            for name, part in (("chat", chat), ("stop", stop), ("keyboard", keyboard), ("metrics", metrics)):
                checks.group(name, part, browser, server)
            if shots:
                pictures(browser, server, shots)
        checks.group("keys", keys, browser, exe)
        browser.close()
    print(f"page: {checks.passed} passed, {len(checks.failed)} failed")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
