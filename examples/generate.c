/* generate.c - one answer, printed as it comes
 *
 *     llmc-example-generate PACKAGE '{"messages": [{"role": "user", "content": "What is a compiler?"}]}'
 *
 * Exit code 0 if the model ended its answer, 3 if it was cut, 1 for errors, 2 for usage.
 */
#include "llmc/llmc.h"

#include <stdio.h>
#include <string.h>

static void print_memory(const llmc_model *model) {
  llmc_ledger_item items[32];
  size_t count = llmc_get_ledger(model, items, 32), i;
  for (i = 0; i < count && i < 32; ++i)
    fprintf(stderr, "%-28s %12llu bytes (%s)\n", items[i].name, (unsigned long long)items[i].bytes, items[i].kind);
}

int main(int argc, char **argv) {
  char error[LLMC_ERROR_BYTES];
  llmc_options options;
  llmc_model *model;
  llmc_request *request;
  llmc_event event;
  int code;

  if (argc != 3) {
    fprintf(stderr, "usage: %s PACKAGE BODY\n", argv[0]);
    return 2;
  }
  llmc_options_init(&options);
  options.context = 2048;
  model = llmc_load(argv[1], &options, error);
  if (!model) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  print_memory(model);
  request = llmc_submit(model, "/v1/chat/completions", argv[2], error);
  if (!request) {
    fprintf(stderr, "%s\n", error);
    llmc_model_free(model);
    return 1;
  }
  while (llmc_next(request, &event, -1) == LLMC_EVENT_TEXT) {
    fwrite(event.text, 1, event.text_bytes, stdout);
    fflush(stdout);
  }
  fprintf(stderr, "\n%llu + %llu tokens, finish %s%s%s\n", (unsigned long long)event.prompt_tokens,
          (unsigned long long)event.completion_tokens, event.finish, *event.error ? ": " : "", event.error);
  code = strcmp(event.finish, "stop") == 0 ? 0 : strcmp(event.finish, "length") == 0 ? 3 : 1;
  llmc_request_free(request);
  llmc_model_free(model);
  return code;
}
