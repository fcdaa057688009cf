//===- Licenses.cpp - notices of what is linked in ------------------------===//
#include "runtime/tool/Commands.h"
#include "runtime/tool/Notices.h"

#include <cstdio>

namespace llmc {

Command addLicenses(CLI::App &app, const std::string &) {
  CLI::App *sub = app.add_subcommand("licenses", "print the notices of the libraries inside");
  return {sub, [] {
            std::printf("This executable contains code of the following libraries. The generated kernels contain no "
                        "library code. The model's own license applies to its weights, tokenizer and template.\n");
            for (const Notice &notice : kNotices)
              std::printf("\n---- %s\n%s\n\n%s\n", notice.library, notice.copyright, notice.text);
            return 0;
          }};
}

} // namespace llmc
