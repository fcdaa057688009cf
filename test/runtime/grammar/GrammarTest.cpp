// Expressions and grammars: which texts they allow, what is refused, and that it takes no time.
#include "../../ErrorOf.h"
#include "Grammars.h"
#include "runtime/grammar/GrammarLimits.h"

#include <gtest/gtest.h>
#include <thread>

using namespace llmc;
using namespace llmc::grammars;

namespace {

std::string repeated(const std::string &text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i)
    out += text;
  return out;
}

TEST(Regex, Texts) {
  const struct {
    const char *pattern;
    std::vector<std::string> good, bad;
  } cases[] = {
      {"", {""}, {"a"}},
      {"abc", {"abc"}, {"ab", "abcd", ""}},
      {"^abc$", {"abc"}, {"^abc$"}},
      {"a|b|", {"a", "b", ""}, {"ab"}},
      {"a*b+c?", {"b", "aab", "abbc"}, {"a", "ac", "abcc"}},
      {"(ab|a)(bc)?", {"a", "ab", "abc", "abbc"}, {"b", "abcbc"}},
      {"[a-c]{2,3}", {"ab", "abc"}, {"a", "abca", "ad"}},
      {"x{3}", {"xxx"}, {"xx", "xxxx"}},
      {"x{2,}", {"xx", "xxxxxxxx"}, {"x"}},
      {"x{0}", {""}, {"x"}},
      {"a{,3}", {"a{,3}"}, {"aa"}}, // text in all three dialects
      {"\\d{4}-\\d\\d", {"2024-12"}, {"2024-1", "२०२४-१२"}},
      {"[^\\d\\s]+", {"ab", "é"}, {"a1", "a b"}},
      {"[\\w.-]+@\\w+\\.com", {"a.b-c@x.com"}, {"a@x,com"}},
      {"[]\\]a-]", {}, {}},
      {"[a\\]-]", {"a", "]", "-"}, {"\\"}},
      {".", {"a", "é", "日", "\U0001F600"}, {"\n", "\r", "\xFF", "\xC3", ""}},
      {"[α-ω]+", {"αβγ"}, {"abc", "\xCE"}},
      {"[\\u4e00-\\u9fff]", {"日"}, {"a"}},
      {"\\ud83d\\ude00", {"\U0001F600"}, {"\xED\xA0\xBD"}},
      {"\\x41\\t\\n\\\\\\.", {"A\t\n\\."}, {"A"}},
      {"(?:a(?<x>b)(?P<y>c))+?", {"abc", "abcabc"}, {"ab"}},
      {"(a*)*b", {"b", "aaab"}, {"a"}},
      {"(a?){3}", {"", "a", "aaa"}, {"aaaa"}},
      {"((a{0,2}b?){2,3}){2}", {"", "aabaab", "ab"}, {"bbbbbbb"}},
      {"(|a)+", {"", "a", "aa"}, {"b"}},
  };
  for (const auto &c : cases) {
    if (c.good.empty() && c.bad.empty()) {
      EXPECT_THROW(regex(c.pattern), GrammarError) << c.pattern;
      continue;
    }
    const auto grammar = regex(c.pattern);
    for (const std::string &text : c.good)
      EXPECT_TRUE(matches(*grammar, text)) << c.pattern << " : " << text;
    for (const std::string &text : c.bad)
      EXPECT_FALSE(matches(*grammar, text)) << c.pattern << " : " << text;
  }
}

TEST(Regex, SearchesInsideText) {
  RegexOptions options;
  options.search = true;
  EXPECT_TRUE(matches(*regex("b", options), "abc"));
  EXPECT_FALSE(matches(*regex("^b", options), "abc"));
  EXPECT_TRUE(matches(*regex("^a|c$", options), "abx"));
  EXPECT_TRUE(matches(*regex("^a|c$", options), "xbc"));
  EXPECT_FALSE(matches(*regex("^a|c$", options), "xbx"));
  EXPECT_TRUE(matches(*regex("^(a|b)$", options), "b"));
}

TEST(Regex, RefusesByName) {
  const struct {
    const char *pattern, *message;
  } cases[] = {
      {"a(?=b)", "(?=b, which is not supported"}, {"(?<!a)b", "not supported"}, {"(?i)a", "(?i)"},
      {"(a)\\1", "byte 3: \\1 is not supported"}, {"\\bfoo", "\\b is not supported"}, {"\\p{L}", "\\p is not supported"},
      {"a++", "possessive"}, {"a**", "a second one"}, {"*a", "something to repeat before '*'"}, {"(a", "expected ) of the group at byte 0, got the end"},
      {"a)", "expected the end of the expression, got ')'"}, {"[a", "got the end"}, {"[b-a]", "ascending"}, {"[\\d-x]", "class as its end"},
      {"a^b", "at the ends"}, {"x{3,2}", "at most as many times as 2, got at least 3"}, {"x{100001}", "at most 100000 times, got 100001"},
      {"[[:alpha:]]", "POSIX"}, {"\\ud800", "surrogates"}, {"\\xg1", "2 hexadecimal digits"}, {"a\\", "got the end"}, {"\xFF", "UTF-8"},
  };
  for (const auto &c : cases)
    EXPECT_NE(errorOf([&] { regex(c.pattern); }).find(c.message), std::string::npos) << c.pattern << ": " << errorOf([&] { regex(c.pattern); });
}

TEST(Gbnf, Texts) {
  const auto arithmetic = gbnf("root  ::= (expr \"=\" ws term \"\\n\")+\n"
                               "expr  ::= term ([-+*/] term)*  # comment\n"
                               "term  ::= ident | num | ( \"(\" ws\n   expr \")\" ) ws\n"
                               "ident ::= [a-z] [a-z0-9_]* ws\n"
                               "num   ::= [0-9]+ ws\n"
                               "ws    ::= [ \\t\\n]*\n");
  EXPECT_TRUE(matches(*arithmetic, "a+(b*2)=12\n"));
  EXPECT_TRUE(matches(*arithmetic, "((((x))))=1\ny=2\n"));
  EXPECT_FALSE(matches(*arithmetic, "((x)=1\n"));
  const auto list = gbnf("root ::= item | item \",\" root\nitem ::= \"\\x61\\u00e9\" {2,3} | [^a-z\\]]");
  EXPECT_TRUE(matches(*list, "aéaé,1,aéaéaé"));
  EXPECT_FALSE(matches(*list, "aé"));
  EXPECT_TRUE(matches(*list, repeated("1,", 5000) + "2")) << "recursion at the end needs no depth";
  EXPECT_TRUE(matches(*gbnf("root ::= . . ."), "aé\U0001F600"));
}

TEST(Gbnf, RefusesByLine) {
  const struct {
    const char *text, *message;
  } cases[] = {
      {"a ::= \"b\"", "expected a rule root, got none"},
      {"root ::= \"a\"\nb ::= c", "line 2: expected a rule c, got none"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2: expected one rule root, got a second one"},
      {"root ::= root \"a\" | \"b\"", "rule root: expected some text before it calls itself, got none"},
      {"root ::= a\na ::= b? a \"x\" | \"y\"\nb ::= \"z\"", "rule a: expected some text"},
      {"root ::= \"a\" root", "allows none"},
      {"root = \"a\"", "expected ::= behind root, got '='"},
      {"root ::= \"a", "got the end"},
      {"root ::= (\"a\"", "expected ), got the end"},
      {"root ::= \"\\q\"", "expected one of"},
      {"root ::= [z-a]", "ascending"},
      {"root ::= \"\\ud800\"", "Unicode"},
  };
  for (const auto &c : cases)
    EXPECT_NE(errorOf([&] { gbnf(c.text); }).find(c.message), std::string::npos) << c.text << ": " << errorOf([&] { gbnf(c.text); });
}

TEST(Grammar, ListsLeaveOutWhatMayBeLeftOut) {
  GrammarBuilder g;
  const auto item = [&](const char *text, bool required) { return GrammarBuilder::Item{g.literal(text), required}; };
  const auto grammar = g.build(g.list({item("a", false), item("b", true), item("c", false), item("d", false)}, g.literal(",")));
  for (const char *text : {"b", "a,b", "b,c", "a,b,c,d", "b,d"})
    EXPECT_TRUE(matches(*grammar, text)) << text;
  for (const char *text : {"", "a", "a,c", ",b", "b,", "ab", "b,d,c"})
    EXPECT_FALSE(matches(*grammar, text)) << text;
  const auto allOptional = g.build(g.list({item("x", false), item("y", false)}, g.literal(",")));
  for (const char *text : {"", "x", "y", "x,y"})
    EXPECT_TRUE(matches(*allOptional, text)) << text;
  EXPECT_FALSE(matches(*allOptional, ",y"));
}

TEST(Grammar, CountsLongRepetitions) {
  const auto grammar = regex("([a-z]é?[0-9]{3,5}[^x]){1000,2000}");
  const std::string one = "aé0123-";
  EXPECT_EQ(match(*grammar, repeated(one, 999)), Match::Begins);
  EXPECT_EQ(match(*grammar, repeated(one, 1000)), Match::Whole);
  EXPECT_EQ(match(*grammar, repeated(one, 2000)), Match::Whole);
  EXPECT_EQ(match(*grammar, repeated(one, 2000) + "a"), Match::No);
  EXPECT_LT(grammar->size(), 200u);
}

// Rules in each other end in time: whatever was begun can be finished.
TEST(Grammar, DepthIsBounded) {
  const auto nested = gbnf("root ::= \"[\" root \"]\" | \"x\"");
  EXPECT_TRUE(matches(*nested, repeated("[", kMaxCallDepth) + "x" + repeated("]", kMaxCallDepth)));
  EXPECT_EQ(match(*nested, repeated("[", kMaxCallDepth)), Match::Begins);
  EXPECT_EQ(match(*nested, repeated("[", kMaxCallDepth + 1)), Match::No);
  // Here the last level has to be left for what an end needs.
  const auto needsMore = gbnf("root ::= \"[\" root \"]\" | a\na ::= \"<\" b \">\"\nb ::= \"(\" c \")\"\nc ::= \"x\" [a-z]{20}");
  std::string text;
  while (match(*needsMore, text + "[") != Match::No)
    text += "[";
  EXPECT_EQ(match(*needsMore, text + "<(x" + repeated("a", 20) + ")>" + repeated("]", text.size())), Match::Whole);
}

constexpr double kSecond = 5; // one, but for sanitizers

/// Of 512 KiB, as threads of a host program may have.
void onSmallStack(const std::function<void()> &body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  pthread_t thread;
  auto run = [](void *f) -> void * {
    (*static_cast<const std::function<void()> *>(f))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()> *>(&body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Grammar, HostileOnesAreRefusedInTime) {
  std::string chain = "root ::= r0\n", wide = "root ::= \"a\"";
  for (int i = 0; i < 4000; ++i)
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"x\"\n";
  chain += "r4000 ::= \"z\"\n";
  for (int i = 0; i < 20000; ++i)
    wide += " | \"k" + std::to_string(i) + "\"";
  const struct {
    std::string name;
    std::function<void()> compile;
    const char *message; // null: it may compile
  } cases[] = {
      {"exponential", [] { regex("(a{1000}){1000}"); }, "at most 500000 characters with repetitions written out"},
      {"exponential twice", [] { regex("((a{100}){100}){100}"); }, "at most 500000 characters"},
      {"nested", [] { regex(repeated("(", 100000) + repeated(")", 100000)); }, "at most 100 deep"},
      {"nested stars", [] { regex(repeated("(", 90) + "a" + repeated(")*", 90)); }, nullptr},
      {"blow-up of subsets", [] { regex("(a|b)*a(a|b){200}"); }, nullptr},
      {"ambiguous", [] { regex("(a|a)*(a|a)*(a|a)*(a*)*b"); }, nullptr},
      {"many optional", [] { regex(repeated("a?", 3000) + repeated("a", 3000)); }, nullptr},
      {"long", [] { regex(repeated("[a-zé]", 100000)); }, "at most 262144 bytes"},
      {"many states", [] { regex(repeated("é", 60000)); }, "at most"},
      {"gbnf nested", [] { gbnf("root ::= " + repeated("(", 100000)); }, "at most 100 deep"},
      {"gbnf repeated", [] { gbnf("root ::= \"a\"" + repeated("{100}", 1000)); }, "deep"},
      {"chain of rules", [&] { gbnf(chain); }, "expected rules in each other"},
      {"wide", [&] { gbnf(wide); }, "at most"},
  };
  onSmallStack([&] {
    for (const auto &c : cases) {
      const double start = cpuSeconds();
      std::string message;
      try {
        c.compile();
      } catch (const GrammarError &error) {
        message = error.what();
      }
      const double seconds = cpuSeconds() - start;
      EXPECT_LT(seconds, kSecond) << c.name;
      if (getenv("LLMC_SHOW_TIMES"))
        printf("%-20s %6.1f ms  %s\n", c.name.c_str(), seconds * 1e3, message.c_str());
      if (c.message)
        EXPECT_NE(message.find(c.message), std::string::npos) << c.name << ": " << message;
    }
  });
}

} // namespace
