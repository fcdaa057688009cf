// Contents that are lists or null, on templates that take them and on others.

#include "llmc/Support/Error.h"
#include "runtime/template/ChatTemplate.h"
#include "runtime/template/ContentParts.h"

#include <gtest/gtest.h>

using namespace llmc;

namespace {

// Takes strings alone, as most do.
constexpr const char *kStrings = "{% for m in messages %}<{{ m.role }}>{{ m['content'] }}{% if m.tool_calls %}"
                                 "{{ m.tool_calls | tojson }}{% endif %}{% endfor %}";
constexpr const char *kAdding = "{% for m in messages %}{{ '<' + m.role + '>' + m.content }}{% endfor %}";
// Takes lists, and images with them.
constexpr const char *kParts = "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
                               "{% for p in m.content %}{% if p.type == 'image' %}<image>{% else %}({{ p.text }}){% endif %}"
                               "{% endfor %}{% endif %}{% endfor %}";
// Loops over a list, whatever it has.
constexpr const char *kTextKeys = "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
                                  "{% for p in m.content if p.type == 'text' %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}";

std::string render(const char *source, const char *messages, bool textOnly = true) {
  ChatOptions options;
  options.textOnly = textOnly;
  try {
    return renderChatJson(ChatTemplate::parse(source), messages, options);
  } catch (const Error &error) {
    return std::string("ERROR ") + error.what();
  }
}

} // namespace

TEST(ContentParts, OneTextIsTheString) {
  const char *list = R"([{"role": "user", "content": [{"type": "text", "text": "yo"}]}])";
  EXPECT_EQ(render(kStrings, list), "<user>yo");
  EXPECT_EQ(render(kAdding, list), "<user>yo");
  EXPECT_EQ(render(kTextKeys, list), "<user>yo");
  EXPECT_EQ(render(kParts, list), "<user>(yo)"); // as the template has it
}

TEST(ContentParts, SeveralAreJoined) {
  const char *list = R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])";
  ASSERT_STREQ(kPartSeparator, "\n");
  EXPECT_EQ(render(kStrings, list), "<user>a\nb");
  EXPECT_EQ(render(kAdding, list), "<user>a\nb");
  EXPECT_EQ(render(kTextKeys, list), "<user>ab");
  EXPECT_EQ(render(kStrings, R"([{"role": "user", "content": ["a", "b"]}])"), "<user>a\nb");
}

TEST(ContentParts, NoPartsAndNull) {
  EXPECT_EQ(render(kStrings, R"([{"role": "user", "content": []}])"), "<user>");
  EXPECT_EQ(render(kParts, R"([{"role": "user", "content": []}])"), "<user>");
  const char *call = R"([{"role": "user", "content": "Q"},
      {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"z": 1.0, "a": 1}}}]}])";
  EXPECT_EQ(render(kStrings, call), "<user>Q<assistant>[{\"function\": {\"name\": \"f\", \"arguments\": {\"z\": 1.0, \"a\": 1}}}]");
  EXPECT_EQ(render(kAdding, call), "<user>Q<assistant>");
  // A template that asks for null gets it.
  EXPECT_EQ(render("{% for m in messages %}{{ 'null' if m.content is none else m.content }}{% endfor %}", call), "Qnull");
  EXPECT_EQ(render("{% for m in messages %}{% if m.content is none %}-{% else %}{{ m.content }}{% endif %}{% endfor %}", call), "Q-");
}

TEST(ContentParts, RolesAreDecidedEach) {
  const char *source = "{% for m in messages %}{% if m.role == 'user' and m.content is not string %}{% for p in m.content %}"
                       "({{ p.text }}){% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  EXPECT_EQ(render(source, R"([{"role": "system", "content": [{"type": "text", "text": "S"}, {"type": "text", "text": "T"}]},
                               {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])"),
            "S\nT(a)(b)");
}

TEST(ContentParts, OtherPartsAreRefused) {
  const char *image = R"([{"role": "user", "content": "x"},
      {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "u"}}]}])";
  for (const char *source : {kStrings, kAdding, kParts, kTextKeys})
    EXPECT_EQ(render(source, image), "ERROR messages[1].content[1]: expected a part of type \"text\", got type \"image_url\"");
  EXPECT_EQ(render(kStrings, R"([{"role": "user", "content": [5]}])"),
            "ERROR messages[0].content[0]: expected a part of type \"text\", got a int");
  const char *picture = R"([{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What?"}]}])";
  EXPECT_EQ(render(kParts, picture, false), "<user><image>(What?)");
  EXPECT_EQ(render(kStrings, picture, false),
            "ERROR messages[0].content: expected text alone, as the chat template takes no other parts");
}

TEST(ContentParts, NumbersAndOrderSurvive) {
  EXPECT_EQ(render("{{ messages[0] | tojson }}", R"([{"zeta": 1, "role": "user", "alpha": 1.0, "big": 123456789012345678901234567890,
                                                      "n": 9007199254740993, "e": 1e2, "content": "<&>'é"}])"),
            R"({"zeta": 1, "role": "user", "alpha": 1.0, "big": 123456789012345678901234567890, "n": 9007199254740993, "e": 100.0, "content": "<&>'é"})");
}
