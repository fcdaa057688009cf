/*===- package.h - the executable's payload -------------------------*- C -*-===*
 *
 * A compiled model is one ELF file: the prebuilt runtime stub, followed by
 * sections, a table of them, and a trailer that ends the file. All integers are
 * little endian. The same payload without the stub (a .llmc file) is loaded by
 * host programs.
 *
 *   [stub ELF][pad][section][pad][section]...[table: llmc_package_section x count][llmc_package_trailer]
 *
 * Sections: "manifest" (JSON, "format": 1), "module.avx2", "module.avx512vnni" (shared objects),
 * "tokenizer" (TokenizerData::serialize), "template" (Jinja source), "weights" (offset a multiple of 2 MiB; absent
 * when the manifest says that they are elsewhere).
 *
 *===----------------------------------------------------------------------===*/
#ifndef LLMC_PACKAGE_H
#define LLMC_PACKAGE_H

#include <stdint.h>

#define LLMC_PACKAGE_MAGIC "LLMCPKG1"

typedef struct llmc_package_section {
  char name[48];      /* zero terminated */
  uint64_t offset;    /* from the start of the file; "weights": multiple of 2 MiB, others of 4096 */
  uint64_t size;      /* bytes */
  uint64_t xxh3;      /* XXH3-64 of the bytes; 0 for "weights" (checked weight by weight, see manifest) */
  uint64_t reserved;
} llmc_package_section;

typedef struct llmc_package_trailer {
  uint64_t table_offset; /* from the start of the file */
  uint32_t count;        /* sections */
  uint32_t version;      /* 1 */
  uint64_t table_xxh3;   /* XXH3-64 of the table */
  uint64_t file_size;    /* of the whole file: tells a truncated package */
  char magic[8];         /* LLMC_PACKAGE_MAGIC */
} llmc_package_trailer;

#endif /* LLMC_PACKAGE_H */
