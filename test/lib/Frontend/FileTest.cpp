//===- FileTest.cpp - files that change, end early or are none ------------===//
#include "TestModels.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "llmc/Support/Text.h"
#include "test/ErrorOf.h"

#include <filesystem>
#include <sys/stat.h>

using namespace llmc;
using namespace llmc::test;
namespace fs = std::filesystem;

namespace {

TEST(InputFile, CutShortWhileItIsRead) {
  TempDir dir;
  std::string path = dir.write("weights", std::string(100000, 'x'));
  InputFile file = InputFile::open(path);
  fs::resize_file(path, 5000); // another process, after the sizes were checked
  std::vector<char> buffer(100000);
  EXPECT_ERROR(file.read(0, buffer.data(), buffer.size()), "weights: the file became shorter while it was read, it ends at byte 5000");
  EXPECT_ERROR(file.read(60000, buffer.data(), 1), "ends at byte 60000");
  file.read(0, buffer.data(), 5000);
  EXPECT_EQ(buffer[4999], 'x');
  fs::remove(path); // removed or replaced: the open file is what it was
  file.read(0, buffer.data(), 5000);
}

TEST(InputFile, RangesAreThoseOfTheFile) {
  TempDir dir;
  InputFile file = InputFile::open(dir.write("f", "0123456789"));
  char byte;
  EXPECT_ERROR(file.read(10, &byte, 1), "expected 1 bytes at byte 10, got a file of 10 bytes");
  EXPECT_ERROR(file.read(~uint64_t(0), &byte, 1), "got a file of 10 bytes");
  EXPECT_ERROR(file.read(1, &byte, ~uint64_t(0)), "got a file of 10 bytes"); // offset + count wraps
  file.read(10, &byte, 0);
}

TEST(InputFile, NoRegularFile) {
  TempDir dir;
  EXPECT_ERROR(InputFile::open(dir.path), "expected a regular file, got a folder");
  EXPECT_ERROR(InputFile::open(dir.file("absent")), "absent: cannot open: No such file");
  ASSERT_EQ(mkfifo(dir.file("pipe").c_str(), 0600), 0);
  EXPECT_ERROR(InputFile::open(dir.file("pipe")), "got a special file"); // without waiting for a writer
  EXPECT_ERROR(InputFile::open("/dev/zero"), "got a special file");
}

TEST(Text, MessagesAreSafeForATerminal) {
  EXPECT_EQ(quote("a\x1b[31m\n\x7f\"\\"), R"("a\x1b[31m\x0a\x7f\"\\")");
  EXPECT_EQ(quote("\xc2\x9b" "31m"), R"("\xc2\x9b31m")"); // the same as one C1 control character
  EXPECT_EQ(quote("é漢\xff\xc3"), "\"é漢\\xff\\xc3\"");
  EXPECT_EQ(quote("ééé", 4), "\"éé\"..."); // never half a character
  EXPECT_EQ(printable("a.\"b\"\x1b"), "a.\"b\"\\x1b");
  EXPECT_EQ(printable(std::string(1000, 'x'), 10), "xxxxxxxxxx...");
}

} // namespace
