//===- Link.cpp - LLD as a library ----------------------------------------===//
#include "llmc/Support/Error.h"
#include "llmc/Target/KernelCompiler.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

using namespace llmc;

std::string llmc::linkSharedObject(const std::vector<std::string> &objects, const std::string &soname) {
  ScratchFolder scratch;
  std::string out = scratch.file("module.so");
  std::vector<std::string> arguments = {"ld.lld", "-shared", "-o", out, "-soname", soname, "-z", "defs",
                                        "--hash-style=gnu", "-z", "relro", "-z", "now", "-z", "noexecstack",
                                        "--build-id=none", "--threads=1", "--strip-debug"};
  for (size_t i = 0; i < objects.size(); ++i) {
    arguments.push_back(scratch.file(std::to_string(i) + ".o"));
    writeFile(arguments.back(), objects[i]);
  }
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result = lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    size_t at = messages.find("error: ");
    at = at == std::string::npos ? 0 : at + 7;
    throw Error("link of " + soname + ": " + messages.substr(at, messages.find('\n', at) - at));
  }
  return readFile(out);
}
