#include "FakeCuda.h"
#include "FakeModel.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <sstream>

using namespace fake;

namespace {

struct TensorMap {
  uint64_t opaque[16];
};

// A kernel reads its parameters, each a pointer to the value, and runs for all CTAs of its grid.
struct Kernel {
  unsigned arguments, maps;
  std::function<void(void **, unsigned grid)> run;
  unsigned numbers = 1; // rows; in a persistent kernel units, too
};


struct State {
  FakeCuda fake;
  std::map<uint64_t, size_t> device; // address, bytes
  std::map<void *, size_t> pinned;
  std::deque<std::function<void()>> queue;
  int current = 0; // contexts set

  State() {
    const char *text = std::getenv("LLMC_FAKE_CUDA");
    std::istringstream words(text ? text : "");
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      const std::string key = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
      if (key == "devices")
        fake.devices = std::stoi(value);
      else if (key == "major")
        fake.major = std::stoi(value);
      else if (key == "minor")
        fake.minor = std::stoi(value);
      else if (key == "name")
        fake.name = value;
      else if (key == "memory")
        fake.memory = std::stoull(value);
      else if (key == "fail" || key == "lose") {
        const size_t colon = value.find(':');
        (key == "fail" ? fake.failingCall : fake.losingKernel) = value.substr(0, colon);
        (key == "fail" ? fake.failingResult : fake.losingResult) = std::stoi(value.substr(colon + 1));
      }
    }
  }
};
State &state() {
  static State *s = new State; // outlives every static object
  return *s;
}

int enter(const char *call) {
  State &s = state();
  if (s.fake.lost)
    return s.fake.lost;
  return s.fake.failingCall == call ? s.fake.failingResult : 0;
}
// The work of the stream, until there is none or `enough`.
int run(const std::function<bool()> &enough = [] { return false; }) {
  State &s = state();
  while (!s.queue.empty() && !s.fake.lost && !enough()) {
    auto work = std::move(s.queue.front());
    s.queue.pop_front();
    work();
  }
  if (s.fake.lost)
    s.queue.clear();
  return s.fake.lost;
}

void expect(bool good, const std::string &mistake) {
  if (!good)
    state().fake.mistakes.push_back(mistake);
}
void expectDevice(uint64_t address, size_t bytes, const std::string &what) {
  auto &device = state().device;
  auto it = device.upper_bound(address);
  const bool inside = it != device.begin() && (--it, address + bytes <= it->first + it->second);
  expect(inside, what + ": not inside device memory");
}

template <typename T> T *at(void *parameter) { return reinterpret_cast<T *>(*static_cast<uint64_t *>(parameter)); }

void embed(void **p, unsigned grid) {
  auto *ids = at<const int32_t>(p[0]);
  const int64_t rows = *static_cast<int64_t *>(p[3]);
  expect(grid == (rows + 3) / 4, "embed: grid");
  for (int64_t t = rows; t % 128; ++t)
    expect(ids[t] == 0, "token ids are not padded with 0");
  for (int64_t t = 0; t < rows; ++t)
    std::memcpy(at<float>(p[2]) + t * kHidden, at<const float>(p[1]) + int64_t(ids[t]) * kHidden, kHidden * 4);
}

void append(void **p, unsigned grid) {
  auto *slots = at<const int32_t>(p[1]);
  const int64_t rows = *static_cast<int64_t *>(p[4]);
  const int32_t blocks = *at<const int32_t>(p[3]);
  for (int64_t t = rows; t % 128; ++t)
    expect(slots[t] == -1, "slots are not padded with -1");
  for (int64_t t = 0; t < rows; ++t) {
    if (slots[t] < 0)
      continue;
    expect(slots[t] / 16 < blocks, "append: slot beyond the pool");
    auto *k = reinterpret_cast<float *>(at<char>(p[2]) + slots[t] / 16 * int64_t(kBlockBytes));
    for (uint32_t j = 0; j < kHidden; ++j) {
      k[j * 16 + slots[t] % 16] = at<const float>(p[0])[t * kHidden + j];
      k[kHidden * 16 + slots[t] % 16 * kHidden + j] = at<const float>(p[0])[t * kHidden + j];
    }
  }
}

void attention(void **p, unsigned grid) {
  auto *tiles = at<const llmc_query_tile>(p[0]);
  auto *table = at<const int32_t>(p[1]);
  const int64_t rows = *static_cast<int64_t *>(p[4]);
  expect(grid == rows, "attention: grid");
  for (int64_t u = rows; u % 128; ++u)
    expect(tiles[u].count == 0, "query tiles are not padded with empty ones");
  for (int64_t u = 0; u < rows; ++u)
    for (int32_t i = 0; i < tiles[u].count; ++i)
      for (uint32_t j = 0; j < kHidden; ++j) {
        float sum = 0;
        const int32_t last = tiles[u].position + i;
        for (int32_t t = 0; t <= last; ++t)
          sum += reinterpret_cast<const float *>(at<char>(p[2]) + table[tiles[u].table + t / 16] *
                                                 int64_t(kBlockBytes))[kHidden * 16 + t % 16 * kHidden + j];
        at<float>(p[3])[(tiles[u].first_token + i) * kHidden + j] = sum / float(last + 1);
      }
}

void gather(void **p, unsigned) {
  for (int64_t i = 0; i < *static_cast<int64_t *>(p[4]); ++i)
    for (uint32_t j = 0; j < kHidden; ++j) {
      const int64_t from = at<const int32_t>(p[0])[i] * int64_t(kHidden) + j;
      at<float>(p[3])[i * kHidden + j] = at<const float>(p[1])[from] + at<const float>(p[2])[from];
    }
}

void head(void **p, unsigned grid) {
  const int64_t rows = *static_cast<int64_t *>(p[3]);
  const int64_t units = *static_cast<int64_t *>(p[4]);
  auto *map = static_cast<const TensorMap *>(p[5]);
  auto *w = at<const float>(p[1]);
  expect(units == (rows + 2) / 3 * 2, "head: units");
  // Two CTAs compute a unit.
  expect(grid == 2 * std::min<int64_t>(units, std::max(1, state().fake.ctas * state().fake.multiprocessors / 2)), "head: grid");
  expect(map->opaque[0] == uint64_t(w) && map->opaque[1] == kHidden && map->opaque[2] == kPaddedVocab &&
             map->opaque[3] == kHidden * 4 && map->opaque[4] == (7 | 3 << 8 | 2 << 16),
         "head: tensor map");
  for (int64_t i = 0; i < rows; ++i)
    for (uint32_t v = 0; v < kPaddedVocab; ++v) {
      float sum = 0;
      for (uint32_t j = 0; j < kHidden; ++j)
        sum = std::fma(at<const float>(p[0])[i * kHidden + j], w[(v / 16 * kHidden + j) * 16 + v % 16], sum);
      at<float>(p[2])[i * kPaddedVocab + v] = sum;
    }
}

void argmax(void **p, unsigned) {
  for (int64_t i = 0; i < *static_cast<int64_t *>(p[2]); ++i) {
    const float *row = at<const float>(p[0]) + i * kPaddedVocab;
    int32_t best = 0;
    for (uint32_t v = 0; v < kVocab; ++v)
      best = !std::isfinite(row[v]) ? -1 : best >= 0 && row[v] > row[best] ? int32_t(v) : best;
    at<int32_t>(p[1])[i] = best;
  }
}

void previousIds(void **p, unsigned grid) {
  const int64_t count = *static_cast<int64_t *>(p[2]);
  expect(grid == (count + 127) / 128, "llmc_previous_ids: grid");
  for (int64_t t = 0; t < count; ++t)
    if (int32_t &id = at<int32_t>(p[0])[t]; id < 0)
      id = std::max(at<const int32_t>(p[1])[-1 - id], 0);
}

void maskLogits(void **p, unsigned grid) {
  const auto number = [&](unsigned i) { return *static_cast<uint64_t *>(p[i]); };
  const uint64_t stride = number(3), vocab = number(4), words = (vocab + 31) / 32;
  expect(grid % 32 == 0 && stride == kPaddedVocab && vocab == kVocab, "llmc_mask_logits: grid or sizes");
  for (unsigned i = 0; i < grid / 32; ++i)
    for (uint64_t v = 0; v < vocab; ++v)
      if (float &x = at<float>(p[0])[at<const int32_t>(p[1])[i] * stride + v]; std::isfinite(x) && !(at<const uint32_t>(p[2])[i * words + v / 32] >> v % 32 & 1))
        x = -std::numeric_limits<float>::max();
}

const std::map<std::string, Kernel> &kernels() {
  static const std::map<std::string, Kernel> table = {{"embed", {3, 0, embed}},       {"append", {4, 0, append}},
                                                      {"attention", {4, 0, attention}}, {"gather", {4, 0, gather}},
                                                      {"head", {3, 1, head, 2}},         {"argmax", {2, 0, argmax}},
                                                      {"llmc_previous_ids", {2, 0, previousIds}},
                                                      {"llmc_mask_logits", {3, 0, maskLogits, 2}}};
  return table;
}

/// A kernel with its parameters, which are copied at the launch.
struct Work {
  std::string name; // with its shape
  std::function<void()> run;
};

using Shape3 = std::array<unsigned, 3>;

Work launched(void *function, const Shape3 &grid, const Shape3 &block, unsigned shared, void **parameters, void **extra) {
  State &s = state();
  auto &[name, kernel] = *static_cast<std::pair<const std::string, Kernel> *>(function);
  expect(grid[1] == 1 && grid[2] == 1 && block[1] == 1 && block[2] == 1 && !extra && grid[0] > 0, name + ": shape of the launch");
  std::vector<uint64_t> values;
  std::vector<TensorMap> maps;
  for (unsigned i = 0; i < kernel.arguments; ++i) {
    values.push_back(*static_cast<uint64_t *>(parameters[i]));
    expectDevice(values.back(), 1, name + ": argument " + std::to_string(i));
  }
  for (unsigned i = 0; i < kernel.numbers; ++i)
    values.push_back(*static_cast<uint64_t *>(parameters[kernel.arguments + i]));
  for (unsigned i = 0; i < kernel.maps; ++i) {
    void *map = parameters[kernel.arguments + kernel.numbers + i];
    expect(reinterpret_cast<uint64_t>(map) % 64 == 0, name + ": tensor map not aligned");
    maps.push_back(*static_cast<TensorMap *>(map));
  }
  auto run = [&s, name = name, &kernel = kernel, values, maps, gridX = grid[0]]() mutable {
    if (name == s.fake.losingKernel) {
      s.fake.lost = s.fake.losingResult;
      return;
    }
    std::vector<void *> pointers;
    for (uint64_t &value : values)
      pointers.push_back(&value);
    for (TensorMap &map : maps)
      pointers.push_back(&map);
    kernel.run(pointers.data(), gridX);
  };
  return {name + " grid " + std::to_string(grid[0]) + " block " + std::to_string(block[0]) + " shared " + std::to_string(shared), run};
}

struct FakeEvent {
  unsigned recorded = 0, happened = 0; // times
};

struct FakeGraph { // made and instantiated alike
  struct Node {
    Work work;
    const Node *after; // null: the first
    const Node *source = nullptr; // in an executable graph: what it was made from
  };
  std::deque<Node> nodes; // do not move
};

} // namespace

#pragma GCC visibility push(default)
extern "C" {

FakeCuda *llmcFakeCuda() { return &state().fake; }

int cuInit(unsigned) { return state().fake.devices ? enter("cuInit") : 100; }
int cuDriverGetVersion(int *version) { return *version = 13010, 0; }
int cuGetErrorName(int result, const char **name) {
  static const std::map<int, const char *> names = {{1, "CUDA_ERROR_INVALID_VALUE"},
                                                    {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                    {100, "CUDA_ERROR_NO_DEVICE"},
                                                    {218, "CUDA_ERROR_INVALID_PTX"},
                                                    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                    {719, "CUDA_ERROR_LAUNCH_FAILED"}};
  auto it = names.find(result);
  return it == names.end() ? 1 : (*name = it->second, 0);
}
int cuGetErrorString(int, const char **text) { return *text = "what the driver says", 0; }
int cuDeviceGetCount(int *count) { return *count = state().fake.devices, 0; }
int cuDeviceGet(int *device, int index) { return *device = index, 0; }
int cuDeviceGetName(char *name, int length, int) { return std::strncpy(name, state().fake.name.c_str(), size_t(length)), 0; }
int cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == 75 ? state().fake.major : attribute == 76 ? state().fake.minor
           : attribute == 97               ? 232448
           : attribute == 16               ? state().fake.multiprocessors
                                           : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int) { return *context = &state(), enter("cuDevicePrimaryCtxRetain"); }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void *context) { return ++state().current, context == &state() ? 0 : 201; }

int cuMemGetInfo_v2(size_t *free, size_t *total) {
  const size_t used = state().fake.allocated + (100 << 20); // the context
  *total = state().fake.memory;
  *free = *total > used ? *total - used : 0;
  return enter("cuMemGetInfo");
}
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  State &s = state();
  if (int error = enter("cuMemAlloc"))
    return error;
  size_t free, total;
  cuMemGetInfo_v2(&free, &total);
  if (bytes > free || bytes == 0)
    return bytes ? 2 : 1;
  void *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(memory, 0xff, bytes); // NaN: nothing relies on fresh memory being zero
  *address = reinterpret_cast<uint64_t>(memory);
  s.device[*address] = bytes;
  s.fake.allocated += bytes;
  ++s.fake.allocations;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  State &s = state();
  auto it = s.device.find(address);
  if (it == s.device.end())
    return 1;
  s.fake.allocated -= it->second;
  s.device.erase(it);
  std::free(reinterpret_cast<void *>(address));
  return 0;
}
int cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  State &s = state();
  if (int error = enter("cuMemHostAlloc"))
    return error;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  s.pinned[*memory] = bytes;
  s.fake.pinned += bytes;
  ++s.fake.allocations;
  return 0;
}
int cuMemFreeHost(void *memory) {
  State &s = state();
  run(); // as the real one, which waits
  s.fake.pinned -= s.pinned[memory];
  s.pinned.erase(memory);
  std::free(memory);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *) {
  if (int error = enter("cuMemcpyHtoDAsync"))
    return error;
  ++state().fake.uploads;
  expectDevice(to, bytes, "copy to the device");
  state().queue.push_back([=] { std::memcpy(reinterpret_cast<void *>(to), from, bytes); });
  return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *) {
  if (int error = enter("cuMemcpyDtoHAsync"))
    return error;
  ++state().fake.downloads;
  expectDevice(from, bytes, "copy to the host");
  state().queue.push_back([=] { std::memcpy(to, reinterpret_cast<void *>(from), bytes); });
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *) {
  expectDevice(to, bytes, "copy on the device");
  expectDevice(from, bytes, "copy on the device");
  state().queue.push_back([=] { std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes); });
  return enter("cuMemcpyDtoDAsync");
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *) {
  expectDevice(to, bytes, "memset");
  state().queue.push_back([=] { std::memset(reinterpret_cast<void *>(to), value, bytes); });
  return enter("cuMemsetD8Async");
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  FakeCuda &f = state().fake;
  if (int error = enter("cuModuleLoadDataEx"))
    return error;
  const bool ptx = std::strcmp(static_cast<const char *>(image), "fake ptx") == 0;
  for (unsigned i = 0; i < count && ptx && !f.jitLog.empty(); ++i)
    if (options[i] == 5)
      std::strcpy(static_cast<char *>(values[i]), f.jitLog.c_str());
  if (ptx && !f.jitLog.empty())
    return 218;
  if (std::strncmp(static_cast<const char *>(image), ".version", 8) != 0) // the runtime's own
    ++(ptx ? f.ptx : f.cubins);
  *module = const_cast<void *>(image);
  return 0;
}
int cuModuleUnload(void *) { return 0; }
int cuModuleGetFunction(void **function, void *, const char *name) {
  auto it = kernels().find(name);
  if (it == kernels().end())
    return 500;
  *function = const_cast<void *>(static_cast<const void *>(&*it));
  return enter("cuModuleGetFunction");
}
int cuFuncSetAttribute(void *, int attribute, int) { return attribute == 8 ? enter("cuFuncSetAttribute") : 1; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ctas, void *, int threads, size_t shared) {
  expect(threads == 128 && shared == 100 << 10, "occupancy: not the kernel's numbers");
  return *ctas = state().fake.ctas, enter("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, shared;
  void *stream;
  struct Attribute {
    int id, pad, value, rest[15];
  } *attributes;
  unsigned numAttributes;
};
struct KernelNode {
  void *function;
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, shared;
  void **parameters, **extra;
  void *kernel, *context;
};
struct GraphEdge {
  unsigned char fromPort, toPort, type, reserved[5];
};

int cuLaunchKernelEx(const LaunchConfig *config, void *function, void **parameters, void **extra) {
  if (int error = enter("cuLaunchKernelEx"))
    return error;
  const bool early = config->numAttributes == 1;
  expect(config->numAttributes <= 1 && (!early || (config->attributes->id == 6 && config->attributes->value == 1)), "attributes of a launch");
  Work work = launched(function, {config->gridX, config->gridY, config->gridZ}, {config->blockX, config->blockY, config->blockZ},
                       config->shared, parameters, extra);
  state().fake.launches.push_back(work.name + (early ? " early" : ""));
  state().queue.push_back(work.run);
  return 0;
}

int cuGraphCreate(FakeGraph **graph, unsigned) {
  ++state().fake.sources;
  return *graph = new FakeGraph, enter("cuGraphCreate");
}
int cuGraphDestroy(FakeGraph *graph) {
  state().fake.sources -= graph != nullptr;
  delete graph;
  return 0;
}
int cuGraphAddKernelNode_v2(FakeGraph::Node **node, FakeGraph *graph, void *const *, size_t before, const KernelNode *k) {
  if (int error = enter("cuGraphAddKernelNode"))
    return error;
  expect(before == 0 && !k->kernel && !k->context, "graph node");
  graph->nodes.push_back({launched(k->function, {k->gridX, k->gridY, k->gridZ}, {k->blockX, k->blockY, k->blockZ}, k->shared,
                                   k->parameters, k->extra),
                          nullptr});
  *node = &graph->nodes.back();
  return 0;
}
int cuGraphAddDependencies_v2(FakeGraph *, FakeGraph::Node *const *from, FakeGraph::Node *const *to, const GraphEdge *edge, size_t count) {
  const bool early = edge->type == 1;
  expect(count == 1 && edge->fromPort == early && edge->toPort == 0 && edge->type <= 1 && !(*to)->after, "graph edge");
  state().fake.earlyEdges += early;
  (*to)->after = *from;
  return enter("cuGraphAddDependencies");
}
int cuGraphInstantiateWithFlags(FakeGraph **exec, FakeGraph *graph, unsigned long long flags) {
  if (int error = enter("cuGraphInstantiate"))
    return error;
  expect(flags == 0, "graph: flags");
  for (size_t i = 0; i < graph->nodes.size(); ++i)
    expect(graph->nodes[i].after == (i ? &graph->nodes[i - 1] : nullptr), "graph: not a chain in the order of the launches");
  ++state().fake.graphs;
  *exec = new FakeGraph(*graph);
  for (size_t i = 0; i < graph->nodes.size(); ++i)
    (*exec)->nodes[i].source = &graph->nodes[i];
  return 0;
}
int cuGraphExecKernelNodeSetParams_v2(FakeGraph *exec, FakeGraph::Node *node, const KernelNode *k) {
  if (int error = enter("cuGraphExecKernelNodeSetParams"))
    return error;
  auto own = std::find_if(exec->nodes.begin(), exec->nodes.end(), [&](const FakeGraph::Node &x) { return x.source == node; });
  expect(own != exec->nodes.end() && !k->kernel && !k->context, "graph node: not of the graph that this one was made from");
  own->work = launched(k->function, {k->gridX, k->gridY, k->gridZ}, {k->blockX, k->blockY, k->blockZ}, k->shared, k->parameters, k->extra);
  ++state().fake.nodeUpdates;
  return 0;
}
int cuGraphExecDestroy(FakeGraph *graph) {
  --state().fake.graphs;
  delete graph;
  return 0;
}
int cuGraphLaunch(FakeGraph *graph, void *) {
  if (int error = enter("cuGraphLaunch"))
    return error;
  ++state().fake.graphLaunches;
  for (const FakeGraph::Node &node : graph->nodes)
    state().queue.push_back(node.work.run);
  return 0;
}

int cuStreamCreate(void **stream, unsigned) { return *stream = &state().queue, enter("cuStreamCreate"); }
int cuStreamDestroy_v2(void *) { return 0; }
int cuStreamSynchronize(void *) { return run() ? state().fake.lost : enter("cuStreamSynchronize"); }
int cuEventCreate(void **event, unsigned) {
  if (int failure = enter("cuEventCreate"))
    return failure;
  *event = new FakeEvent;
  return 0;
}
int cuEventDestroy_v2(void *event) {
  run(); // what is in the queue knows it
  delete static_cast<FakeEvent *>(event);
  return 0;
}
int cuEventRecord(void *event, void *) {
  auto *e = static_cast<FakeEvent *>(event);
  state().queue.push_back([e, number = ++e->recorded] { e->happened = number; });
  return enter("cuEventRecord");
}
int cuEventSynchronize(void *event) {
  auto *e = static_cast<FakeEvent *>(event);
  return run([&] { return e->happened == e->recorded; }) ? state().fake.lost : enter("cuEventSynchronize");
}
int cuEventElapsedTime(float *milliseconds, void *, void *) { return *milliseconds = 0.5f, enter("cuEventElapsedTime"); }

int cuTensorMapEncodeTiled(TensorMap *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
                           int promotion, int fill) {
  expect(rank == 2 && steps[0] == 1 && steps[1] == 1 && interleave == 0 && fill == 0 && promotion == 2 && box[0] == 32 && box[1] == 64,
         "tensor map: settings");
  map->opaque[0] = reinterpret_cast<uint64_t>(address);
  map->opaque[1] = dims[0];
  map->opaque[2] = dims[1];
  map->opaque[3] = strides[0];
  map->opaque[4] = uint64_t(type | swizzle << 8 | int(rank) << 16);
  return enter("cuTensorMapEncodeTiled");
}

} // extern "C"
#pragma GCC visibility pop
