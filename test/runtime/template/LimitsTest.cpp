// Unknown constructs are errors that name them, hostile templates end at a limit.

#include "llmc/Support/Error.h"
#include "runtime/template/ChatTemplate.h"

#include <gtest/gtest.h>

#include <pthread.h>

using namespace llmc;

static std::string parseError(std::string_view source) {
  try {
    ChatTemplate::parse(source);
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

static std::string renderError(std::string_view source) {
  ChatTemplate chatTemplate = ChatTemplate::parse(source);
  try {
    chatTemplate.render(jinja::Value::fromJson(R"({"xs": [1, 2, 3], "s": "text", "d": {"a": 1}})", "context"));
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

TEST(TemplateErrors, UnknownNamesAtParseTime) {
  EXPECT_EQ(parseError("a\n {% zap %}"), "chat template:2:5: expected a supported tag (if, for, set, macro, call, filter, "
                                         "with, print, raw, break, continue, generation), got 'zap'");
  EXPECT_EQ(parseError("{{ 'q'|shout }}"), "chat template:1:8: expected a known filter, got 'shout'");
  EXPECT_EQ(parseError("{{ 7 | 8 }}"), "chat template:1:8: expected the name of a filter, got '8'");
  EXPECT_EQ(parseError("{{ x is shiny }}"), "chat template:1:9: expected a known test, got 'shiny'");
  EXPECT_EQ(parseError("{{ x | map('shout') }}"), "chat template:1:12: expected a known filter, got 'shout'");
  EXPECT_EQ(parseError("{{ x | selectattr('a', 'shiny') }}"), "chat template:1:24: expected a known test, got 'shiny'");
  EXPECT_EQ(parseError("é{% for x in y %}"), "chat template:1:18: expected {% else %} or {% endfor %}, got the end of the template");
  EXPECT_EQ(parseError("a\xFF"), "chat template:1:2: expected UTF-8, got a malformed byte sequence");
  for (const char *filter : {"urlize", "pprint", "random"}) // jinja2 has them, this engine has not
    EXPECT_EQ(parseError(std::string("{{ x | ") + filter + " }}"), std::string("chat template:1:8: expected a known filter, got '") + filter + "'");
  for (const char *tag : {"include", "import", "from", "extends", "block", "autoescape", "do", "trans"})
    EXPECT_NE(parseError(std::string("{% ") + tag + " x %}").find("chat template:1:4: expected a supported tag"), std::string::npos) << tag;
  EXPECT_EQ(parseError("{{ x.encode() }}"), "chat template:1:6: expected a supported method, got 'encode'");
  EXPECT_EQ(parseError("{{ lipsum() }}"), "chat template:1:4: expected a supported function, got 'lipsum'");
  // What a condition may keep from running is an error only when it runs, as in jinja2.
  EXPECT_EQ(parseError("{% if x %}{{ x | shout }}{% endif %}{{ x | shout if x }}"), "no error");
  EXPECT_EQ(renderError("{% if xs %}{{ xs | shout }}{% endif %}"), "chat template:1:20: expected a known filter, got 'shout'");
}

TEST(TemplateErrors, AtRunTimeWithPosition) {
  EXPECT_EQ(renderError("a\n{{ raise_exception('roles must alternate') }}"), "chat template:2:4: roles must alternate");
  EXPECT_EQ(renderError("{{ q.x }}"), "chat template:1:6: expected 'q' to be defined where 'x' of it is used");
  EXPECT_EQ(renderError("{{ 1 + s }}"), "chat template:1:4: expected operands that '+' can join, got int and str");
  EXPECT_EQ(renderError("{{ x.shout() }}{{ s.shout() }}").substr(0, 17), "chat template:1:6");
  EXPECT_EQ(renderError("{{ s.shout() }}"), "chat template:1:6: expected 'shout' to be a function or macro, got nothing of that name");
  EXPECT_EQ(renderError("{{ shout(1) }}"), "chat template:1:4: expected 'shout' to be a function or macro, got nothing of that name");
  EXPECT_EQ(renderError("{{ s | trim(1, 2) }}"), "chat template:1:8: 'trim': expected at most 1 arguments, got 2");
  EXPECT_EQ(renderError("{{ s.upper }}"),
            "chat template:1:1: expected a value that can be printed, got a function, which the reference prints with its address");
  EXPECT_EQ(renderError("{{ xs.append(1) }}"), "chat template:1:7: expected 'append' to be a function or macro, got nothing of that name");
  EXPECT_EQ(renderError("{{ 10 ** 4300 }}"), "chat template:1:1: expected a value that can be printed, got an integer of more than 4300 digits");
  EXPECT_EQ(renderError("{{ s.keys() }}"), "chat template:1:6: expected 'keys' to be a function or macro, got nothing of that name");
  EXPECT_EQ(renderError("{% set n = namespace() %}{% set n.n = n %}{{ n }}"),
            "chat template:1:43: expected a value that can be printed, got a namespace that contains itself");
}

static std::string repeat(std::string_view unit, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i)
    out.append(unit);
  return out;
}

/// Deep nesting must end in an Error before it ends the stack, also in a server's
/// small thread.
TEST(TemplateLimits, NestingOnASmallStack) {
  auto work = [] {
    const std::pair<const char *, const char *> brackets[] = {{"(", ")"}, {"[", "]"}, {"{1:", "}"}, {"-", ""}, {"not ", ""},
                                                              {"x[", "]"}, {"x|default(", ")"}, {"1 if 1 else ", ""}, {"range(", ")"},
                                                              {"x is eq(", ")"}, {"x.get(", ")"}};
    for (auto [open, close] : brackets) {
      EXPECT_NE(parseError("{{ " + repeat(open, 20000) + "1" + repeat(close, 20000) + " }}").find("nested"), std::string::npos) << open;
      EXPECT_NE(parseError("{{ " + repeat(open, 20000)), "no error") << open;
    }
    for (const char *chain : {" + 1", " and 1", " or 0", " ~ 1", " ** 1"}) // flat, so without a limit
      EXPECT_EQ(renderError("{{ 1" + repeat(chain, 20000) + " }}"), "no error") << chain;
    for (const char *chain : {"|trim", ".a", "[0]", " if 1 else 2", "(1)"})
      EXPECT_NE(parseError("{{ x" + repeat(chain, 20000) + " }}").find("nested"), std::string::npos) << chain;
    for (const char *tag : {"{% if x %}", "{% for x in y %}", "{% filter trim %}", "{% macro m() %}", "{% set x %}", "{% with %}"})
      EXPECT_NE(parseError(repeat(tag, 20000)).find("nested"), std::string::npos) << tag;
    // At the limit the tree is still walked.
    EXPECT_EQ(renderError("{{ " + repeat("(", 90) + "1" + repeat(")", 90) + " }}"), "no error");
    EXPECT_EQ(renderError("{{ 0" + repeat(" + 1", 90) + " }}"), "no error");
    EXPECT_EQ(renderError("{{ " + repeat("-", 90) + "1 }}"), "no error");
    EXPECT_EQ(renderError(repeat("{% if 1 %}", 90) + repeat("{% endif %}", 90)), "no error");
    EXPECT_EQ(renderError(repeat("{% for q in xs[:1] %}", 90) + repeat("{% endfor %}", 90)), "no error");
    EXPECT_NE(renderError("{% macro m(k) %}{{ m(k + 1) }}{% endmacro %}{{ m(0) }}").find("nested"), std::string::npos);
    EXPECT_NE(renderError("{% set n = namespace() %}{% macro m(k) %}{% call m(k) %}{{ caller() }}{% endcall %}{% endmacro %}{{ m(0) }}").find("nested"),
              std::string::npos);
    EXPECT_NE(renderError("{% for q in xs recursive %}{{ loop(xs) }}{% endfor %}").find("nested"), std::string::npos);
    EXPECT_NE(renderError("{% set n = namespace(g=xs) %}{% for i in range(1000) %}{% set n.g = n.g | map('int') %}{% endfor %}").find("nested"),
              std::string::npos);
    EXPECT_NE(renderError("{% set n = namespace() %}{% set n.n = [n] %}{{ n | string }}").find("contains itself"), std::string::npos);
    EXPECT_NE(renderError("{% macro m(k) %}{% for q in xs %}{% filter trim %}{{ [(m(k + 1) | trim) ~ 'x'] | join }}"
                          "{% endfilter %}{% endfor %}{% endmacro %}{{ m(0) }}")
                  .find("nested"),
              std::string::npos);
    EXPECT_NE(renderError("{% set n = namespace(v=1) %}{% for i in range(1000) %}{% set n.v = [n.v] %}{% endfor %}").find("nested"),
              std::string::npos);
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  pthread_attr_setstacksize(&attributes, 8 << 20); // its frames are much larger
#else
  pthread_attr_setstacksize(&attributes, 512 << 10);
#endif
#endif
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void *p) -> void * {
                  (*static_cast<decltype(work) *>(p))();
                  return nullptr;
                },
                &work),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(TemplateLimits, WorkOutputMemory) {
  EXPECT_NE(renderError("{% for i in range(1000000000) %}{% endfor %}").find("range: expected at most 100000 items"), std::string::npos);
  EXPECT_NE(renderError("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}").find("steps"),
            std::string::npos);
  EXPECT_NE(renderError("{% for i in range(100000) %}{% for j in range(1000) %}0123456789{% endfor %}{% endfor %}").find("output"),
            std::string::npos);
  EXPECT_NE(renderError("{{ 'ab' * 100000000000 }}").find("bytes"), std::string::npos);
  EXPECT_NE(renderError("{{ [1] * 100000000 }}").find("items"), std::string::npos);
  EXPECT_NE(renderError("{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}").find("bytes"),
            std::string::npos);
  EXPECT_NE(renderError("{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s.replace('x', 'xx') %}{% endfor %}")
                .find("bytes"),
            std::string::npos);
  EXPECT_NE(renderError("{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s %}{{ n.s }}{{ n.s }}{% endset %}{% endfor %}")
                .find("at most"),
            std::string::npos);
  EXPECT_NE(renderError("{% set n = namespace(s=[0]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}").find("at most"),
            std::string::npos);
  EXPECT_NE(renderError("{% set n = namespace(s=[0]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}").find("at most"),
            std::string::npos);
  // Widths and counts.
  for (const char *wide : {"{{ '%2000000000d' % 1 }}", "{{ '%.2000000000f' % 1 }}", "{{ '%*d' % (999999999999, 1) }}", "{{ '{:2000000000}'.format(1) }}",
                           "{{ '{:02000000000,}'.format(1) }}", "{{ '{:.2000000000f}'.format(1.5) }}", "{{ s.center(99999999999) }}",
                           "{{ s.ljust(2 ** 80) }}", "{{ s.zfill(99999999999) }}", "{{ '\\t'.expandtabs(99999999999) }}", "{{ s | center(2 ** 63) }}",
                           "{{ s | indent(99999999999) }}", "{{ xs | tojson(indent=99999999999) }}", "{{ xs | batch(99999999999, 0) | list }}",
                           "{{ xs | slice(99999999999) | list }}", "{{ 10 ** (10 ** 10) }}", "{{ (10 ** 4000) ** 9 }}", "{{ ('9' * 5000) | int | string }}",
                           "{{ (s * 99999).replace('t', s * 9999) }}", "{{ (s * 999999) | replace('', s) }}", "{{ ('<' * 9999999) | e }}"})
    EXPECT_EQ(renderError(wide).substr(0, 14), wide == std::string("{{ ('9' * 5000) | int | string }}") ? "no error" : "chat template:") << wide;
  // Work without output.
  for (const char *busy : {"{% set n = namespace(x=3) %}{% for i in range(100000) %}{% set n.x = n.x * n.x %}{% endfor %}",
                           "{% for i in range(100000) %}{% set x = range(100000) %}{% endfor %}",
                           "{% for i in range(100000) %}{% set x = (s * 9999).upper() %}{% endfor %}",
                           "{% set l = range(99999) | list %}{% for i in l %}{% set x = i in l %}{% endfor %}",
                           "{% for i in range(100000) %}{% set x = (s * 9999) | wordwrap(1) %}{% endfor %}",
                           "{% for i in range(100000) %}{% macro m() %}{% endmacro %}{% set x = namespace(a=1, b=m) %}{{ 's' * 999 }}{% endfor %}",
                           "{% set n = namespace(d={}) %}{% for i in range(99999) %}{% set n.d = dict(n.d, **{i | string: i}) %}{% endfor %}"})
    EXPECT_NE(renderError(busy).find("expected"), std::string::npos) << busy;
  // Lists that share parts: small in memory, exponential when walked.
  const std::string twin = "{% set n = namespace(a=[0], b=[0]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}"
                           "{% set n.b = [n.b, n.b] %}{% endfor %}";
  for (const char *use : {"{{ n.a }}", "{{ n.a | tojson }}", "{{ n.a | string }}", "{{ [n.a] | join }}", "{{ n.a == n.b }}",
                          "{{ n.a < n.b }}", "{{ n.a in [n.b] }}", "{{ [n.a].index(n.b) }}", "{{ '%s' % n.a }}",
                          "{{ 1 ~ n.a }}", "{{ [n.b] | select('eq', n.a) | list }}", "{{ [n.a, n.b] | sort }}"})
    EXPECT_NE(renderError(twin + use).find("bytes"), std::string::npos) << use;
}
