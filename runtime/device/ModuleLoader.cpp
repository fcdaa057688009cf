//===- ModuleLoader.cpp ---------------------------------------------------===//
#include "runtime/device/ModuleLoader.h"
#include "llmc/Support/Error.h"
#include "runtime/device/StepPhases.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace llmc {

namespace {

#if defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
constexpr char kMachineName[] = "AArch64";
#else
constexpr Elf64_Half kMachine = EM_X86_64;
constexpr char kMachineName[] = "x86-64";
#endif

void writeAll(int fd, std::string_view bytes, const std::string &name) {
  while (!bytes.empty()) {
    ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      throw Error(name + ": cannot write the module to memory: " + std::strerror(errno));
    bytes.remove_prefix(size_t(n));
  }
}

// Where /proc or executable memfds are forbidden.
void *openFromTemporaryFile(std::string_view bytes, const std::string &name) {
  const char *folder = std::getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/llmc-module-XXXXXX";
  int fd = mkstemp(path.data()); // mode 600
  if (fd < 0)
    throw Error(name + ": cannot create a temporary file " + path + ": " + std::strerror(errno));
  void *handle = nullptr;
  try {
    writeAll(fd, bytes, name);
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  } catch (...) {
    close(fd);
    unlink(path.c_str());
    throw;
  }
  close(fd);
  unlink(path.c_str());
  return handle;
}

// `fd` stays open while the module is loaded: glibc recognises a library by its path, and a second module
// under a reused descriptor number would silently be the first.
void *openFromMemory(std::string_view bytes, const std::string &name, int &fd) {
  fd = memfd_create("llmc-module", MFD_CLOEXEC);
  if (fd < 0)
    return nullptr;
  try {
    writeAll(fd, bytes, name);
  } catch (...) {
    close(std::exchange(fd, -1));
    throw;
  }
  return dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
}

} // namespace

// The dynamic loader maps what the program headers claim and faults on a file that is shorter.
static void checkElf(std::string_view bytes, const std::string &name) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
    throw Error(name + ": cannot load the module: no ELF file of " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN || header.e_machine != kMachine ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    throw Error(name + ": cannot load the module: expected a shared object for " + std::string(kMachineName));
  if (header.e_phoff > bytes.size() || (bytes.size() - header.e_phoff) / sizeof(Elf64_Phdr) < header.e_phnum)
    throw Error(name + ": cannot load the module: truncated: its program headers end beyond its " +
                std::to_string(bytes.size()) + " bytes");
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_offset > bytes.size() || segment.p_filesz > bytes.size() - segment.p_offset)
      throw Error(name + ": cannot load the module: truncated: segment " + std::to_string(i) + " ends beyond its " +
                  std::to_string(bytes.size()) + " bytes");
  }
}

LoadedModule::LoadedModule(std::string_view bytes, const std::string &name) {
  checkElf(bytes, name);
  handle_ = openFromMemory(bytes, name, fd_);
  if (!handle_)
    handle_ = openFromTemporaryFile(bytes, name);
  if (!handle_) {
    const char *why = dlerror();
    if (fd_ >= 0)
      close(fd_);
    throw Error(name + ": cannot load the module: " + (why ? why : "unknown reason"));
  }
  module_ = static_cast<const llmc_module_v1 *>(dlsym(handle_, LLMC_MODULE_SYMBOL));
  try {
    if (!module_)
      throw Error(name + ": the module does not export " LLMC_MODULE_SYMBOL);
    checkModule(*module_, name);
  } catch (...) {
    dlclose(handle_);
    if (fd_ >= 0)
      close(fd_);
    throw;
  }
}

LoadedModule::~LoadedModule() {
  if (handle_)
    dlclose(handle_);
  if (fd_ >= 0)
    close(fd_);
}

LoadedModule &LoadedModule::operator=(LoadedModule &&other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(module_, other.module_);
  std::swap(fd_, other.fd_);
  return *this;
}

namespace {

struct Checker {
  const llmc_module_v1 &m;
  std::string name;

  [[noreturn]] void fail(const std::string &what) const { throw Error(name + ": " + what); }
  void expect(bool ok, const std::string &what) const {
    if (!ok)
      fail(what);
  }
  void less(uint64_t value, uint64_t limit, const std::string &what) const {
    if (value >= limit)
      fail("expected " + what + " below " + std::to_string(limit) + ", got " + std::to_string(value));
  }

  void arg(const llmc_arg_v1 &a, const llmc_launch_v1 &l, const llmc_program_v1 &p, bool reference,
           const std::string &where) const {
    switch (a.kind) {
    case LLMC_ARG_ARENA:
      return less(a.value, p.arena_bytes, where + ": arena offset");
    case LLMC_ARG_WEIGHT:
      return less(a.value, m.weights_bytes, where + ": weight offset");
    case LLMC_ARG_KV:
      expect(!reference, where + ": the reference program has no KV cache");
      less(a.reserved, m.num_kv_groups, where + ": KV group");
      return less(a.value, m.kv_groups[a.reserved].block_bytes, where + ": KV offset");
    case LLMC_ARG_STEP:
      expect(a.value != LLMC_FIELD_QUERY_TILES || l.rows == LLMC_ROWS_QUERY_TILES,
             where + ": query tiles are for launches over query tiles");
      return less(a.value, LLMC_FIELD_ARRIVALS + 1, where + ": step field");
    case LLMC_ARG_WEIGHT_F32:
      expect(reference, where + ": an unpacked weight is an argument of the reference program only");
      return less(a.value, m.num_weights, where + ": weight index");
    default:
      fail(where + ": unknown argument kind " + std::to_string(a.kind));
    }
  }

  void tensorMap(const llmc_tensor_map_v1 &map, const llmc_launch_v1 &l, const std::string &where) const {
    less(map.arg, l.num_args, where + ": argument");
    expect(l.args[map.arg].kind != LLMC_ARG_STEP, where + ": expected an argument that stays, got one of the step");
    less(map.element, LLMC_I16 + 1, where + ": element");
    expect(map.rank >= 1 && map.rank <= 5, where + ": expected 1 to 5 dimensions, got " + std::to_string(map.rank));
    expect(map.swizzle == 0 || map.swizzle == 32 || map.swizzle == 64 || map.swizzle == 128,
           where + ": expected a swizzle of 0, 32, 64 or 128 bytes, got " + std::to_string(map.swizzle));
    for (uint32_t d = 0; d < map.rank; ++d)
      expect(map.dims[d] > 0 && map.box[d] >= 1 && map.box[d] <= 256,
             where + ": dimension " + std::to_string(d) + " is empty or its box not of 1 to 256 elements");
  }

  void cudaKernel(const llmc_variant_v1 &variant, const llmc_launch_v1 &l, const std::string &where) const {
    expect(variant.name, where + ": a kernel has no name");
    const auto &kernel = *static_cast<const llmc_cuda_kernel_v1 *>(variant.kernel);
    const std::string name = where + ", kernel " + variant.name;
    expect(kernel.cubin || kernel.ptx, name + ": no cubin and no PTX");
    expect(kernel.threads >= 1 && kernel.threads <= 1024,
           name + ": expected 1 to 1024 threads, got " + std::to_string(kernel.threads));
    expect(kernel.persistent <= 8, name + ": expected persistent to be 0 to 8, got " + std::to_string(kernel.persistent));
    expect(!kernel.num_tensor_maps || kernel.tensor_maps, name + ": no tensor maps");
    for (uint32_t t = 0; t < kernel.num_tensor_maps; ++t)
      tensorMap(kernel.tensor_maps[t], l, name + ", tensor map " + std::to_string(t));
  }

  void launch(const llmc_launch_v1 &l, const llmc_program_v1 &p, bool reference, const std::string &where) const {
    expect(l.op, where + ": no op name");
    less(l.rows, LLMC_ROWS_QUERY_TILES + 1, where + ": rows");
    expect(l.num_variants > 0, where + ": no variant");
    uint32_t last = 0;
    for (uint32_t v = 0; v < l.num_variants; ++v) {
      const llmc_variant_v1 &variant = l.variants[v];
      const bool fused = variant.span_rows == LLMC_FUSED;
      expect(variant.kernel && variant.row_block > 0 && (variant.col_blocks > 0 || fused),
             where + ": variant " + std::to_string(v) + " lacks a kernel, a row block or a column block");
      expect(variant.max_rows > last, where + ": variants are not in ascending order of max_rows");
      expect(!fused || (l.rows != LLMC_ROWS_QUERY_TILES && variant.max_rows != UINT32_MAX),
             where + ": variant " + std::to_string(v) + " is one of several launches, but over query tiles or on all steps");
      expect(!variant.span_rows || fused || (l.rows == LLMC_ROWS_QUERY_TILES && variant.max_rows != UINT32_MAX),
             where + ": variant " + std::to_string(v) + " works on spans of the cache, but not over query tiles or on all steps");
      last = variant.max_rows;
      if (std::string_view(m.target) == "cuda")
        cudaKernel(variant, l, where);
    }
    expect(last == UINT32_MAX, where + ": the last variant does not take every row count");
    for (uint32_t a = 0; a < l.num_args; ++a)
      arg(l.args[a], l, p, reference, where + ", argument " + std::to_string(a));
    for (uint32_t v = 0; v < l.num_values; ++v) {
      expect(l.values[v].name, where + ": a value has no name");
      less(l.values[v].offset, p.arena_bytes, where + ": value offset");
      less(l.values[v].rows, LLMC_ROWS_QUERY_TILES + 1, where + ": value rows");
      less(l.values[v].element, LLMC_E4M3 + 1, where + ": value element");
    }
  }

  void program(const llmc_program_v1 &p, bool reference) const {
    const std::string which = reference ? "reference launch " : "launch ";
    for (uint32_t i = 0; i < p.num_launches; ++i) {
      const llmc_launch_v1 &l = p.launches[i];
      launch(l, p, reference, which + std::to_string(i) + " (" + (l.op ? l.op : "?") + ")");
      expect(l.op_id == i, which + std::to_string(i) + ": expected op id " + std::to_string(i) + ", got " +
                               std::to_string(l.op_id));
    }
    const uint64_t logitsBytes = uint64_t(m.max_logits) * m.padded_vocab * sizeof(float);
    expect(p.logits_offset <= p.arena_bytes && p.arena_bytes - p.logits_offset >= logitsBytes,
           which + "list: the logits lie outside the arena");
    const uint64_t idsBytes = uint64_t(m.max_logits) * sizeof(int32_t);
    expect(p.ids_offset == UINT64_MAX || (p.ids_offset <= p.arena_bytes && p.arena_bytes - p.ids_offset >= idsBytes),
           which + "list: the ids lie outside the arena");
    const uint64_t hiddenBytes = uint64_t(m.max_logits) * m.padded_hidden * sizeof(float);
    expect(p.hidden_offset == UINT64_MAX ||
               (p.hidden_offset <= p.arena_bytes && p.arena_bytes - p.hidden_offset >= hiddenBytes),
           which + "list: the hidden rows lie outside the arena");
  }
};

} // namespace

void checkModule(const llmc_module_v1 &m, const std::string &name) {
  Checker c{m, name};
  if (m.version != LLMC_ABI_VERSION || m.struct_size != sizeof(llmc_module_v1))
    c.fail("expected module version " + std::to_string(LLMC_ABI_VERSION) + " of " +
           std::to_string(sizeof(llmc_module_v1)) + " bytes, got version " + std::to_string(m.version) + " of " +
           std::to_string(m.struct_size) + " bytes");
  c.expect(m.target && m.isa, "the module names no target");
  c.expect(std::string_view(m.target) == "cpu" || std::string_view(m.target) == "cuda",
           std::string("expected a module for cpu or cuda, got one for ") + m.target);
  c.expect(m.max_tokens && m.max_seqs && m.max_logits && m.vocab && m.hidden && m.max_context,
           "a limit or a size of the module is zero");
  c.expect(m.padded_vocab >= m.vocab && m.padded_hidden >= m.hidden, "a padded size is below the logical one");
  c.expect(m.num_kv_groups == 1, "expected 1 KV group, got " + std::to_string(m.num_kv_groups));
  for (uint32_t g = 0; g < m.num_kv_groups; ++g)
    c.expect(m.kv_groups[g].block_bytes > 0, "KV group " + std::to_string(g) + " has empty blocks");
  for (uint32_t w = 0; w < m.num_weights; ++w) {
    const llmc_weight_v1 &weight = m.weights[w];
    c.expect(weight.name, "weight " + std::to_string(w) + " has no name");
    c.expect(weight.offset <= m.weights_bytes && weight.bytes <= m.weights_bytes - weight.offset,
             std::string("weight ") + weight.name + " lies outside the weights");
    c.expect(weight.rows > 0 && weight.cols > 0 && weight.rows <= weight.padded_rows && weight.cols <= weight.padded_cols,
             std::string("weight ") + weight.name + " has a padded size below the logical one");
  }
  c.expect(!m.num_costs || m.costs, "no costs of launches");
  for (uint32_t i = 0; i < m.num_costs; ++i)
    c.less(m.costs[i].arithmetic, LLMC_COST_E4M3 + 1, "cost " + std::to_string(i) + ": arithmetic");
  c.expect(m.program.num_launches > 0, "the program has no launches");
  c.program(m.program, false);
  if (hasPhases(m))
    c.program(m.prompt, false);
  if (m.reference.num_launches)
    c.program(m.reference, true);
}

} // namespace llmc
