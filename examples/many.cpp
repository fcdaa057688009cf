// many.cpp - each line of standard input is a prompt; all are answered at the same time, and printed in order
//
//     printf 'Once upon a time\nThe capital of France is\n' | llmc-example-many PACKAGE [TOKENS]
#include "llmc/llmc.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

// Just what JSON demands of a string.
static std::string quoted(const std::string &text) {
  std::string json = "\"";
  for (unsigned char c : text) {
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, c < 0x20 || c == '"' || c == '\\' ? "\\u%04x" : "%c", c);
    json += escaped;
  }
  return json + "\"";
}

int main(int argc, char **argv) try {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s PACKAGE [TOKENS] <PROMPTS\n", argv[0]);
    return 2;
  }
  const std::string tokens = std::to_string(argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 32);
  llmc::api::Model model(argv[1]);
  std::vector<std::string> prompts;
  std::vector<llmc::api::Request> requests;
  for (std::string line; std::getline(std::cin, line);) {
    requests.push_back(model.complete("{\"prompt\": " + quoted(line) + ", \"temperature\": 0, \"max_tokens\": " + tokens + "}"));
    prompts.push_back(line);
  }
  for (size_t i = 0; i < requests.size(); ++i)
    std::cout << prompts[i] << requests[i].rest() << "\n";
  const llmc_metrics m = model.metrics();
  std::fprintf(stderr, "%llu requests in %llu steps\n", static_cast<unsigned long long>(m.submitted), static_cast<unsigned long long>(m.steps));
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
