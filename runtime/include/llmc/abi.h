/*===- abi.h - all that the compiler and the runtime share ---------*- C -*-===*
 *
 * Plain C. The compiler (lib/Conversion/RTToLLVM) lays out constant data of
 * these types in the generated shared object, whose only export is
 *
 *     extern const llmc_module_v1 llmc_module_v1_export;   // symbol "llmc_module_v1"
 *
 * and the runtime reads them. A struct never changes once released: a new
 * field means a new version; readers check `struct_size` and `version`.
 *
 * Shapes are written [outer, inner], row major. "Padded" means rounded up to a
 * multiple of LLMC_PAD elements; the padding of every activation row is zero.
 *
 *===----------------------------------------------------------------------===*/
#ifndef LLMC_ABI_H
#define LLMC_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LLMC_ABI_VERSION 1
/* Columns of every activation row and both sides of every weight are padded to this. */
#define LLMC_PAD 32
/* Rows of an arena buffer are allocated up to a multiple of this, so that a kernel may compute
 * (never store) rows past the last token. */
#define LLMC_ROW_PAD 16
/* Tokens per KV block. */
#define LLMC_KV_BLOCK 16
/* Start of the weights and of every large section of a package, in bytes. */
#define LLMC_WEIGHT_ALIGNMENT (2u << 20)
#define LLMC_MODULE_SYMBOL "llmc_module_v1"

/*===----------------------------------------------------------------------===*
 * The step: one ragged batch of new tokens through the whole model
 *===----------------------------------------------------------------------===*/

/* Everything that decides one sampled token. Defaults that mean "off" in parentheses. */
typedef struct llmc_sampler_v1 {
  float temperature;         /* <= 1e-6: greedy, lowest id on ties */
  int32_t top_k;             /* <= 0: off */
  float top_p;               /* (1) */
  float min_p;               /* (0) */
  float typical_p;           /* (1) */
  float repetition_penalty;  /* (1) */
  float presence_penalty;    /* (0) */
  float frequency_penalty;   /* (0) */
  const int32_t *history;    /* [history_length] ids that the penalties count; may be null */
  uint32_t history_length;
  uint32_t bias_count;
  const int32_t *bias_ids;   /* [bias_count] */
  const float *bias_values;  /* [bias_count] added to the logits */
  const uint32_t *token_mask; /* [ceil(vocab / 32)] allowed tokens, bit t % 32 of word t / 32; null: all */
  uint64_t seed;             /* Philox4x32-10 key (Salmon et al. 2011) */
  uint64_t position;         /* Philox counter: index of the sampled token in its sequence */
  uint32_t logprobs;         /* log-probabilities wanted: 0 none, 1 the chosen token's, 1 + n also those of the n likeliest */
  uint32_t prompt_length;    /* the first ids of history, which presence and frequency penalties do not count */
} llmc_sampler_v1;

/* The part of llmc_sampler_v1 that generated code samples by (step field SAMPLERS). 48 bytes, read as 12 words. Tokens with
 * y = (logit - largest) * inverse_temperature are kept by top-k, then top-p, then min-p, and one is drawn. */
typedef struct llmc_row_sampler {
  float inverse_temperature; /* 1 for greedy rows */
  float noise;               /* 1: draw; 0: greedy */
  int32_t top_k;
  int32_t top_k_rounds;      /* of bisection; 0: top-k is off */
  float top_p;
  int32_t top_p_rounds;      /* draws until one is in the nucleus, then the likeliest; 0: top-p is off */
  float log_min_p;           /* ln(min_p); -inf: off */
  uint32_t reserved;
  uint32_t seed[2];          /* low word first */
  uint32_t position[2];
} llmc_row_sampler;

/* Paged view of one KV group (layers that keep the same tokens). */
typedef struct llmc_kv_view_v1 {
  const int32_t *block_table; /* [num_seqs, block_table_stride] block ids in position order */
  const int32_t *slots;       /* [num_tokens] block id * LLMC_KV_BLOCK + offset where a token is written; -1: nowhere */
  uint32_t block_table_stride;
  uint32_t reserved;
} llmc_kv_view_v1;

typedef struct llmc_step_v1 {
  uint32_t struct_size; /* sizeof(llmc_step_v1) */
  uint32_t version;     /* LLMC_ABI_VERSION */

  /* in: sizes */
  uint32_t num_tokens; /* over all sequences, <= module max_tokens */
  uint32_t num_seqs;   /* <= module max_seqs */
  uint32_t num_logits; /* rows of logits wanted, <= module max_logits */
  uint32_t num_kv_groups;

  /* in: tokens, sequence after sequence */
  const int32_t *token_ids;   /* [num_tokens]; a value -1-j takes output slot j of the previous step */
  const float *embeddings;    /* [num_tokens, padded hidden] used where not null instead of token_ids */
  const int32_t *positions;   /* [num_tokens] */
  const int32_t *seq_starts;  /* [num_seqs + 1] first token of each sequence */
  const int32_t *kv_lengths;  /* [num_seqs] tokens in the cache after this step */
  const llmc_kv_view_v1 *kv;  /* [num_kv_groups] */
  const int32_t *logits_rows; /* [num_logits] token indices that want logits, ascending */
  const uint32_t *tree_mask;  /* [num_tokens, tree_mask_words] ancestors among this step's tokens; null: causal */
  uint32_t tree_mask_words;
  uint32_t flags;             /* reserved, 0 */
  const int32_t *adapter_ids; /* [num_seqs]; null: none */
  const llmc_sampler_v1 *samplers; /* [num_logits]; null: logits only */
  int32_t stop_after_op; /* execute launches up to and including this op id; -1: all */
  uint32_t num_generated; /* the last so many tokens, whole sequences, were generated; the others are of prompts (llmc_module_v1.prompt) */

  /* out: null where not wanted */
  int32_t *out_ids;         /* [num_logits] */
  float *out_logits;        /* [num_logits, vocab] (not padded) */
  float *out_logprobs;      /* [num_logits, largest logprobs of the samplers] of the raw logits, chosen token first */
  int32_t *out_logprob_ids; /* as out_logprobs; -1 where a row has fewer */
  float *out_hidden;        /* [num_logits, hidden] before the head */
  float *out_attention_sums; /* [num_kv_groups, num_seqs, stride of block table * LLMC_KV_BLOCK] */
} llmc_step_v1;

/*===----------------------------------------------------------------------===*
 * The module: what a generated shared object exports
 *===----------------------------------------------------------------------===*/

/* What a kernel argument points to. The runtime resolves every argument to one pointer. */
enum llmc_arg_kind {
  LLMC_ARG_ARENA = 0,      /* value: byte offset into the arena */
  LLMC_ARG_WEIGHT = 1,     /* value: byte offset into the weights */
  LLMC_ARG_KV = 2,         /* value: byte offset of the layer inside a KV block; points to that place of block 0 */
  LLMC_ARG_STEP = 3,       /* value: enum llmc_step_field */
  LLMC_ARG_WEIGHT_F32 = 4  /* value: weight index; row-major f32 [rows, cols] unpacked by the runtime (reference program only) */
};

enum llmc_step_field {
  LLMC_FIELD_TOKEN_IDS = 0,   /* int32 [num_tokens] */
  LLMC_FIELD_POSITIONS = 1,   /* int32 [num_tokens] */
  LLMC_FIELD_LOGITS_ROWS = 2, /* int32 [num_logits] */
  LLMC_FIELD_SLOTS = 3,       /* int32 [num_tokens] (KV group 0) */
  LLMC_FIELD_BLOCK_TABLE = 4, /* int32 [num_seqs, block_table_stride] (KV group 0) */
  LLMC_FIELD_QUERY_TILES = 5, /* llmc_query_tile [number of query tiles] for this launch's row_block */
  LLMC_FIELD_EMBEDDINGS = 6,  /* f32 [num_tokens, padded hidden] or null */
  LLMC_FIELD_NUM_BLOCKS = 7,  /* int32 [1] blocks of the KV pool (bounds checks) */
  LLMC_FIELD_SAMPLERS = 8,    /* llmc_row_sampler [num_logits] */
  LLMC_FIELD_KV_SPANS = 9,    /* llmc_kv_span [number of spans] for this launch's row_block */
  LLMC_FIELD_ARRIVALS = 10    /* int32 [query tiles of the spans, col_blocks], zero */
};

/* Tokens of a segment of a cached sequence at least, segments of a context at most, segments of a group (llmc_kv_span). */
#define LLMC_KV_SEGMENT 128
#define LLMC_KV_SEGMENTS 32
#define LLMC_KV_GROUP 8
#define LLMC_SPAN_GROUPS 0x80000000u /* beside a variant's span_rows: its spans may be groups */
#define LLMC_FUSED 0x40000000u       /* as a variant's span_rows: of launches that become one (llmc_variant_v1) */

/* What the dynamic row count of a launch is. */
enum llmc_rows {
  LLMC_ROWS_TOKENS = 0,
  LLMC_ROWS_LOGITS = 1,
  LLMC_ROWS_SEQS = 2,
  LLMC_ROWS_QUERY_TILES = 3 /* sum over sequences of ceil(new tokens / row_block) */
};

/* A run of at most row_block query tokens of one sequence. 16 bytes. */
typedef struct llmc_query_tile {
  int32_t first_token; /* index among the step's tokens */
  int32_t count;       /* 1 .. row_block */
  int32_t position;    /* of first_token; the others follow it */
  int32_t table;       /* start of the sequence's row in the block table, in elements */
} llmc_query_tile;

/* A query tile's view of a part of its sequence's cache: of one segment, or of a group of LLMC_KV_GROUP (the last has what is left).
 * Segments start at multiples of their length: LLMC_KV_SEGMENT tokens where a group of them holds a query token's context, else
 * twice as many, doubled until LLMC_KV_SEGMENTS of them do. So they are a function of the token's position alone, and a tile's tokens all have the same. What segments give is put
 * together inside each group, oldest tokens first, then what groups give: the same sums whether spans are segments or groups.
 * The spans of a tile follow each other, oldest tokens first. 44 bytes. */
typedef struct llmc_kv_span {
  int32_t first_token, count, position, table; /* as of llmc_query_tile */
  int32_t begin, end; /* positions of the span's tokens; end: at most what the tile's last token sees */
  int32_t slot;       /* place of its result, in tokens: `count` from here on; unused if it is the tile's only span */
  int32_t first_slot; /* of the tile's first span */
  int32_t spans;      /* of the tile */
  int32_t tile;       /* number of the tile among those of the step */
  int32_t segment;    /* tokens of a segment */
} llmc_kv_span;

typedef struct llmc_arg_v1 {
  uint32_t kind; /* enum llmc_arg_kind */
  uint32_t reserved;
  uint64_t value;
} llmc_arg_v1;

/* A compiled kernel computes units [begin, end) of a launch whose row count is `rows`.
 * args: one pointer per launch argument, in order. Units are independent of each other. */
typedef void (*llmc_kernel_fn)(void *const *args, int64_t rows, int64_t begin, int64_t end);

enum llmc_element { LLMC_F32 = 0, LLMC_BF16 = 1, LLMC_F16 = 2, LLMC_I8 = 3, LLMC_I32 = 4, LLMC_I16 = 5, LLMC_E4M3 = 6 };

/* How a kernel's bulk tensor copies see one of its arguments; the runtime encodes it as a CUtensorMap at load
 * (CUDA driver API, cuTensorMapEncodeTiled). dims[0] is the innermost dimension. */
typedef struct llmc_tensor_map_v1 {
  uint32_t arg;     /* index of the launch argument that the tensor starts at */
  uint32_t element; /* enum llmc_element */
  uint32_t rank;    /* 1 .. 5 */
  uint32_t swizzle; /* bytes: 0, 32, 64, 128 */
  uint64_t dims[5];    /* elements */
  uint64_t strides[5]; /* bytes from one index of dim i to the next; strides[0] is the element's size */
  uint32_t box[5];     /* elements of one copy */
  uint32_t reserved;
} llmc_tensor_map_v1;

/* A kernel for a GPU. The entry has the variant's name; its grid is (units, 1, 1); its parameters are, in order: one
 * device pointer per launch argument, int64 rows, then the tensor maps (128 bytes each, by value, 64-byte aligned).
 * Global memory that kernels write is touched only behind griddepcontrol.wait, which some threads of every CTA that stay to its end
 * execute: a kernel may be on the card (programmatic dependent launch) while the kernels before it run.
 * A persistent kernel's grid has no more CTAs than run at a time, and a whole number of clusters of `persistent` CTAs each (a
 * dimension that its code has); cluster c of g computes units c, c + g, c + 2 g and so on, and int64 units follows rows. */
typedef struct llmc_cuda_kernel_v1 {
  const void *cubin; /* null: only PTX, which the driver compiles at load */
  uint64_t cubin_bytes;
  const char *ptx; /* zero-terminated */
  uint64_t ptx_bytes; /* without the zero */
  uint32_t threads;      /* of a CTA */
  uint32_t shared_bytes; /* dynamic shared memory */
  uint32_t num_tensor_maps;
  uint32_t persistent;   /* CTAs that compute a unit together, 1 to 8; 0: not persistent */
  const llmc_tensor_map_v1 *tensor_maps;
} llmc_cuda_kernel_v1;

/* One of the forms of a kernel, taken for row counts up to max_rows (the token, logits or sequence
 * count; for QUERY_TILES the token count, or any if row_block holds the new tokens of every sequence). The last variant of a launch has max_rows = UINT32_MAX.
 * A variant with span_rows works on spans of the cache: it is taken if no sequence has more than max_rows new tokens, the
 * counts of spans that are not their tile's only one sum to at most span_rows, and, where a sequence has more than row_block new
 * tokens, the units of the next variant would be few and long (runtime/device/KVSpans.h).
 * Neighbouring launches that may become one have variants of span_rows = LLMC_FUSED for the same row counts: without units
 * (col_blocks 0) in all but the last, whose variant does the work of all. It leaves out their results, but for its own, which have the
 * same bits either way. Steps that are watched or end early take the next variant in each of them. */
typedef struct llmc_variant_v1 {
  uint32_t max_rows;
  uint32_t row_block;  /* units = ceil(rows / row_block) * col_blocks; for QUERY_TILES: tiles (or spans) * col_blocks */
  uint32_t col_blocks; /* unit u: row block u / col_blocks, column block u % col_blocks; 0 only beside LLMC_FUSED */
  uint32_t span_rows;  /* 0: none; may have LLMC_SPAN_GROUPS beside it; LLMC_FUSED */
  const void *kernel; /* target "cpu": an llmc_kernel_fn; "cuda": a const llmc_cuda_kernel_v1 * */
  const char *name; /* of the kernel */
} llmc_variant_v1;

/* A result of a launch, for dumps, verify and diff. */
typedef struct llmc_value_v1 {
  const char *name;    /* the lm value it holds, equal in the main and the reference program */
  uint64_t offset;     /* into the program's arena */
  uint32_t element;    /* enum llmc_element; I8, I16: codes, with scales at scales_offset; of each four columns
                          I16 stores 0, 2, 1, 3 in this order (tile.pair_order) */
  uint32_t rows;       /* enum llmc_rows */
  uint32_t cols;       /* logical columns */
  uint32_t stride;     /* elements between rows */
  uint64_t scales_offset; /* f32 [rows, padded cols / 32, 2] = (scale, scale * sum of codes) of I8 and I16, [rows, 32] = (scale, ...) of E4M3; else 0 */
} llmc_value_v1;

/* What does most of a launch's arithmetic; each has a peak of its own on a machine. */
enum llmc_cost_arithmetic { LLMC_COST_F32 = 0, LLMC_COST_BF16 = 1, LLMC_COST_I16 = 2, LLMC_COST_I8 = 3, LLMC_COST_E4M3 = 4 };

/* The least work of a launch, as a function of the step (runtime/device/LaunchCost.h): what must be computed and moved once,
 * whatever the variant. "row": a row of the launch, of QUERY_TILES a token. A multiply-add is 2 FLOPs, codes or floats. */
typedef struct llmc_cost_v1 {
  uint32_t arithmetic; /* enum llmc_cost_arithmetic */
  uint32_t window;     /* cached tokens that a token sees at most; 0: all up to itself */
  uint64_t flops_per_row;
  uint64_t flops_per_pair;           /* of a token and a cached token that it sees; softmax is not counted */
  uint64_t weight_bytes;             /* packed, once a launch */
  uint64_t weight_bytes_per_row;     /* gathered: of a table */
  uint64_t activation_bytes_per_row; /* read and written, padding included */
  uint64_t kv_read_bytes;            /* of one cached token, once for each sequence */
  uint64_t kv_write_bytes_per_row;
} llmc_cost_v1;

typedef struct llmc_launch_v1 {
  uint32_t op_id; /* index in the program */
  uint32_t rows;  /* enum llmc_rows */
  int32_t layer;  /* -1: none */
  uint32_t num_variants;
  uint32_t num_args;
  uint32_t num_values;
  const llmc_variant_v1 *variants;
  const llmc_arg_v1 *args;
  const llmc_value_v1 *values;
  const char *op; /* e.g. "blk.3.attn_output" */
  uint32_t cost;  /* index into the module's costs; not below num_costs: unknown (the reference program) */
  uint32_t reserved;
} llmc_launch_v1;

typedef struct llmc_program_v1 {
  uint32_t num_launches;
  uint32_t reserved;
  const llmc_launch_v1 *launches; /* executed in order, each complete before the next */
  uint64_t arena_bytes;
  uint64_t logits_offset; /* f32 [num_logits, padded vocab] in the arena */
  uint64_t hidden_offset; /* f32 [num_logits, padded hidden] in the arena, input of the head (after the norm) or UINT64_MAX */
  uint64_t ids_offset;    /* int32 [num_logits] in the arena: the sampled ids, -1 for a row that is not finite; or UINT64_MAX */
} llmc_program_v1;

/* Packed forms of a weight (docs/packing.md; written by lib/Target/Packing only). n16: panels of 16
 * output rows; in a panel, records of k; in a record, lanes are rows.
 *   codes  (Q*, IQ*) records of scales and planes of codes: llmc/Target/CodedForm.h
 *   BF16   per 2 k, 64 bytes: [16 rows][2]      F16, F32: per k, [16 rows]
 *   E4M3   per 2 k, 32 bytes: [16 rows][2]; behind a panel's records its rows' scales, f32 [16]
 * ROWS: row-major, padded columns (norm weights and biases as f32 [1, padded cols], tables); ROWS_BF16 has padded rows too.
 * ROWS_E4M3: padded rows, row-major, 16 at a time; behind these their scales, f32 [16], and 64 bytes of zeros. */
enum llmc_layout {
  LLMC_LAYOUT_ROWS_F32 = 0,
  LLMC_LAYOUT_N16_F32 = 1,
  LLMC_LAYOUT_N16_F16 = 2,
  LLMC_LAYOUT_N16_BF16 = 3,
  LLMC_LAYOUT_N16_Q4_0 = 4,
  LLMC_LAYOUT_N16_Q4_1 = 5,
  LLMC_LAYOUT_N16_Q8_0 = 6,
  LLMC_LAYOUT_ROWS_BF16 = 7, /* matrices on a GPU: k contiguous, as tensor cores and bulk copies want it */
  LLMC_LAYOUT_N16_Q5_0 = 8,
  LLMC_LAYOUT_N16_Q5_1 = 9,
  LLMC_LAYOUT_N16_Q2_K = 10,
  LLMC_LAYOUT_N16_Q3_K = 11,
  LLMC_LAYOUT_N16_Q4_K = 12,
  LLMC_LAYOUT_N16_Q5_K = 13,
  LLMC_LAYOUT_N16_Q6_K = 14,
  LLMC_LAYOUT_N16_IQ4_NL = 15,
  LLMC_LAYOUT_N16_IQ4_XS = 16,
  LLMC_LAYOUT_N16_E4M3 = 17,
  LLMC_LAYOUT_ROWS_E4M3 = 18 /* as ROWS_BF16 */
};

typedef struct llmc_weight_v1 {
  const char *name;
  uint64_t offset; /* into the weights, multiple of 64 */
  uint64_t bytes;
  uint32_t layout; /* enum llmc_layout */
  uint32_t reserved;
  uint64_t rows, cols;               /* logical */
  uint64_t padded_rows, padded_cols; /* multiples of LLMC_PAD */
} llmc_weight_v1;

/* Layers whose caches hold the same tokens share one block table. A KV block holds LLMC_KV_BLOCK tokens of
 * every layer of the group; inside, per layer and KV head: K then V.
 *   16-bit elements: K [head_dim / 2][16 tokens][2], V [8 token pairs][head_dim][2]  (pairs adjacent: the
 *   right operand of a pairwise bf16 dot)
 *   f32:             K [head_dim][16 tokens],        V [16 tokens][head_dim]
 * On a GPU (bf16):   K [16 tokens][head_dim],        V [16 tokens][head_dim] */
typedef struct llmc_kv_group_v1 {
  uint32_t element; /* enum llmc_element */
  uint32_t layers, heads;
  uint32_t k_dim, v_dim;
  uint32_t window; /* 0: full attention */
  uint64_t block_bytes;
  uint64_t layer_bytes; /* of one layer inside a block */
  uint64_t head_bytes;  /* of one head inside a layer */
} llmc_kv_group_v1;

typedef struct llmc_module_v1 {
  uint32_t struct_size; /* sizeof(llmc_module_v1) */
  uint32_t version;     /* LLMC_ABI_VERSION */
  const char *target;   /* "cpu", "cuda" */
  const char *isa;      /* "avx2", "avx512vnni"; "sm_90a" */
  uint32_t max_tokens, max_seqs, max_logits;
  uint32_t vocab, padded_vocab;
  uint32_t hidden, padded_hidden;
  uint32_t max_context; /* positions the model was trained for */
  uint32_t num_layers;
  uint32_t num_kv_groups;
  uint32_t num_weights;
  uint32_t num_costs;
  const llmc_kv_group_v1 *kv_groups;
  const llmc_weight_v1 *weights;
  uint64_t weights_bytes;
  llmc_program_v1 program;   /* the compiled model */
  llmc_program_v1 reference; /* the oracle: lm -> linalg -> f32 loops on one whole sequence from position 0; num_launches 0: absent */
  const llmc_cost_v1 *costs; /* [num_costs] each different from the others; for llmc explain and bench --profile */
  llmc_program_v1 prompt;    /* `program` with another arithmetic, for tokens that were not generated; num_launches 0: absent, and
                                `program` is for all. Both have the same cache; each has all of the arena to itself. */
} llmc_module_v1;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LLMC_ABI_H */
