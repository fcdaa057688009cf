/*===- llmc.h - a compiled model inside a program of one's own -----*- C -*-===*
 *
 * Loads what `llmc compile` makes and answers many requests at a time. Plain C;
 * llmc.hpp is the same for C++. docs/c-api.md has the tour, examples/ programs.
 *
 * Threads: every function may be called from any thread at any time, with one
 * exception: one request is read (llmc_next) by one thread at a time and not
 * freed meanwhile. A thread of the library steps the model; it never waits for
 * a reader.
 *
 * Ownership: what a function returns belongs to the caller, who frees it with
 * the named function. Texts that structs point to belong to the library; each
 * says until when they are there. What is passed in is copied.
 *
 * Errors: functions that can fail take `error`, a buffer of LLMC_ERROR_BYTES
 * bytes or null, and write a zero-terminated message there ("" without one).
 *
 * Structs that the caller makes start with `struct_size`, so that a program
 * goes on to work with a newer library. llmc_options_init fills it in.
 *
 *===----------------------------------------------------------------------===*/
#ifndef LLMC_LLMC_H
#define LLMC_LLMC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LLMC_ERROR_BYTES 1024

typedef struct llmc_model llmc_model;
typedef struct llmc_request llmc_request;

/* 0 or null stands for the default. */
typedef struct llmc_options {
  size_t struct_size;
  uint32_t threads;      /* CPU threads (all that the process may use) */
  uint32_t device;       /* number of the GPU, of a package for a GPU */
  uint64_t context;      /* tokens of the longest prompt and answer (8192, at most the model's) */
  uint64_t kv_bytes;     /* memory of the KV cache, of all requests (two of the longest) */
  const char *policy;    /* "fcfs" (default), "priority", "shortest-first" */
  uint32_t max_running;  /* requests that are worked on at a time (the package's limit) */
  uint32_t token_budget; /* tokens of a step (the package's limit) */
  int32_t no_prefix_cache;
  int32_t map_weights;   /* serve from the file; do not copy the weights into huge pages */
} llmc_options;

/* Everything default. */
void llmc_options_init(llmc_options *options);

/* Loads the package at `path`. `options` may be null. Null on failure. Freed with llmc_model_free. */
llmc_model *llmc_load(const char *path, const llmc_options *options, char *error);
/* Requests of the model may outlive this call; the model is gone when the last of them is freed. Null: nothing. */
void llmc_model_free(llmc_model *model);

/* A request in the form of OpenAI's interface: `url` is "/v1/chat/completions" or "/v1/completions", `body` the JSON, with n 1;
 * docs/batch.md lists the fields. What is wrong with it is told here. Null on failure. Freed with llmc_request_free. */
llmc_request *llmc_submit(llmc_model *model, const char *url, const char *body, char *error);
/* Cancels it if it has not ended. Null: nothing. */
void llmc_request_free(llmc_request *request);
/* The request ends soon, with finish "cancelled". Does nothing when it has ended; may be called twice. */
void llmc_cancel(llmc_request *request);

enum llmc_event_kind {
  LLMC_EVENT_TIMEOUT = 0, /* nothing came in time */
  LLMC_EVENT_TEXT = 1,    /* more text */
  LLMC_EVENT_END = 2      /* the last event; comes again if asked again */
};

/* Texts are there until the next llmc_next or llmc_request_free of this request; none is null. */
typedef struct llmc_event {
  int32_t kind;           /* enum llmc_event_kind */
  uint32_t reserved;
  const char *text;       /* TEXT: whole UTF-8 characters, zero-terminated */
  size_t text_bytes;      /* without the zero */
  const char *finish;     /* END: "stop", "length", "cancelled", "error" */
  const char *error;      /* END with "error" */
  uint64_t prompt_tokens, cached_tokens, completion_tokens; /* END; cached: of the prompt */
} llmc_event;

/* Waits for the next event, at most `timeout_ms` milliseconds (negative: as long as it takes), and returns its kind. Text that
 * came meanwhile comes as one event. */
int32_t llmc_next(llmc_request *request, llmc_event *event, int64_t timeout_ms);

/* Since the load, but for what is said to be now. */
typedef struct llmc_metrics {
  size_t struct_size; /* set by the caller: sizeof(llmc_metrics) */
  uint64_t submitted, finished, cancelled, failed;           /* requests */
  uint64_t prompt_tokens, cached_tokens, completion_tokens;  /* of ended requests */
  uint64_t steps, preemptions;
  uint64_t running, waiting;                                 /* requests, now */
  uint64_t kv_blocks, kv_blocks_free, kv_blocks_cached;      /* now; free: no request holds them; cached: findable */
} llmc_metrics;
void llmc_get_metrics(const llmc_model *model, llmc_metrics *metrics);

/* A part of the memory that the model uses. */
typedef struct llmc_ledger_item {
  const char *name; /* the model's */
  const char *kind; /* "process", "file", "pinned", "device"; static */
  uint64_t bytes;
} llmc_ledger_item;
/* Fills in the first `capacity` items and returns how many there are. */
size_t llmc_get_ledger(const llmc_model *model, llmc_ledger_item *items, size_t capacity);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LLMC_LLMC_H */
