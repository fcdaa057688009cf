//===- Serve.cpp - the model behind HTTP ----------------------------------===//
#include "runtime/server/HttpServer.h"
#include "runtime/tool/Commands.h"
#include "runtime/tool/ScheduleFlags.h"

#include <cstdio>
#include <memory>

namespace llmc {

namespace {

struct ServeFlags {
  LoadFlags load;
  ScheduleFlags schedule;
  HttpOptions http;
  std::vector<std::string> names, keys;
  std::string keyFile, tlsCertificates, tlsKey;
  std::string batchFolder;
  uint64_t replicas = 1;
  uint64_t maxFile = 64 << 20, batchSpace = uint64_t(10) << 30;
  uint64_t port = 8080, maxQueue = 1024, maxBody = 8 << 20, maxConnections = 4096;
  float drainSeconds = 30, idleSeconds = 75, stallSeconds = 30;
};

int serve(const ServeFlags &flags, const std::string &exe) {
  HttpOptions http = flags.http;
  http.port = uint16_t(flags.port);
  http.maxBody = flags.maxBody;
  http.maxFile = flags.maxFile;
  http.maxConnections = flags.maxConnections;
  http.drainSeconds = flags.drainSeconds;
  http.idleSeconds = flags.idleSeconds;
  http.stallSeconds = flags.stallSeconds;
  http.keys = ApiKeys(flags.keys, flags.keyFile);
  if (!flags.tlsCertificates.empty() || !flags.tlsKey.empty())
    http.tls = loadTls(flags.tlsCertificates, flags.tlsKey);
  ServiceOptions options;
  options.load = flags.load;
  options.exe = exe;
  options.engine = flags.schedule.engineOptions();
  options.names = flags.names;
  options.maxQueue = flags.maxQueue;
  options.replicas = flags.replicas;
  options.batchFolder = flags.batchFolder;
  options.batchSpace = flags.batchSpace;
  HttpServer server(http); // a port that is taken is known before the weights are loaded
  Service service(options, server.notify());
  server.catchSignals();
  std::printf("%s serves %s on %s\n", exe.c_str(), service.name().c_str(), server.url().c_str());
  std::fflush(stdout);
  server.run(service);
  return 0;
}

void addHttpFlags(CLI::App &sub, ServeFlags &flags) {
  addCount(sub, "--port", flags.port, "port to listen on; 0: any that is free, printed (default 8080)", 0, 65535);
  sub.add_option("--host", flags.http.host, "address to listen on; 0.0.0.0: every network of this machine (default 127.0.0.1)")->type_name("HOST");
  sub.add_option("--api-key", flags.keys, "key that clients must send; may be given several times (default: none is needed)")->type_name("KEY");
  sub.add_option("--api-key-file", flags.keyFile, "file with a key a line: other users of the machine see flags")->type_name("FILE");
  sub.add_option("--tls-cert", flags.tlsCertificates, "speak TLS with the certificate in this file, in PEM, and those that vouch for it")->type_name("FILE");
  sub.add_option("--tls-key", flags.tlsKey, "the certificate's private key, in PEM, without a passphrase")->type_name("FILE");
  sub.add_option("--cors-origin", flags.http.corsOrigins, "origin of web pages that may ask, as https://example.org; *: all (default: none)")
      ->type_name("ORIGIN");
  addSize(sub, "--max-body", flags.maxBody, "longest body of a request (default 8MiB)");
  addCount(sub, "--max-connections", flags.maxConnections, "open connections, at most (default 4096)", 1, 1 << 20);
  addReal(sub, "--idle-seconds", flags.idleSeconds, "time for a request's header to come (default 75)", 0.01, 86400);
  addReal(sub, "--stall-seconds", flags.stallSeconds, "time for a body to come, and for a client to take what it is sent (default 30)", 0.01, 86400);
  addReal(sub, "--drain-seconds", flags.drainSeconds, "time for answers to end after SIGTERM or Ctrl-C; a second signal ends it (default 30)", 0, 86400);
  sub.add_flag("--log-requests", flags.http.log, "a line on stderr for each request");
  for (const char *flag : {"--api-key", "--api-key-file", "--tls-cert", "--tls-key", "--cors-origin", "--max-body", "--max-connections", "--idle-seconds", "--stall-seconds",
                           "--drain-seconds", "--log-requests"})
    sub.get_option(flag)->group("HTTP");
}

void addBatchFlags(CLI::App &sub, ServeFlags &flags) {
  sub.add_option("--batch-dir", flags.batchFolder, "folder of files and batches: /v1/files and /v1/batches are served (default: they are not)")->type_name("DIR");
  addSize(sub, "--max-file", flags.maxFile, "longest file that a client may send (default 64MiB)");
  addSize(sub, "--batch-space", flags.batchSpace, "bytes of all files, beyond which none is taken (default 10GiB)");
  for (const char *flag : {"--batch-dir", "--max-file", "--batch-space"})
    sub.get_option(flag)->group("Batches");
}

} // namespace

Command addServe(CLI::App &app, const std::string &name) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App *sub = app.add_subcommand("serve", "answer OpenAI requests over HTTP, many at a time");
  addHttpFlags(*sub, *flags);
  addBatchFlags(*sub, *flags);
  sub->add_option("--model-name", flags->names, "what requests may call the model; answers use the first (default: the package's name)")
      ->type_name("NAME");
  addCount(*sub, "--max-queue", flags->maxQueue, "requests that wait for their turn, at most; more get status 503 (default 1024)", 1, 1 << 30);
  addCount(*sub, "--replicas", flags->replicas,
           "engines, each on its share of the CPUs and with weights and a KV cache of its own; --threads are those of all (default 1)", 1, 1024);
  addScheduleFlags(*sub, flags->schedule);
  for (const char *flag : {"--max-queue", "--replicas"})
    sub->get_option(flag)->group("Scheduling");
  addLoadFlags(*sub, flags->load);
  addFormatFlags(*sub, flags->load);
  sub->get_option("--context")->description("longest prompt and answer of a request in tokens (default: 8192, at most the model's)");
  sub->get_option("--kv-memory")->description("memory of the KV cache, for all requests (default: two of the longest)");
  sub->footer("Routes: POST /v1/chat/completions, /v1/completions, /v1/responses, /v1/files, /v1/batches, /tokenize, /detokenize;\n"
              "GET /v1/models, /health, /ready, /metrics, /openapi.json, and a page for people at /.\n"
              "docs/serve.md in llmc's sources lists the fields; what is not known or not supported is refused by name.\n"
              "Example:\n  " + name + " serve --port 8080 --kv-memory=4GiB\n"
              "  curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \\\n"
              "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}], \"stream\": true}'\n"
              "  python3 -c 'import openai; print(openai.OpenAI(base_url=\"http://127.0.0.1:8080/v1\", api_key=\"-\").models.list())'");
  return {sub, [flags, name] { return serve(*flags, name); }};
}

} // namespace llmc
