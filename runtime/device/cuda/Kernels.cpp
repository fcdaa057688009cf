//===- Kernels.cpp --------------------------------------------------------===//
#include "runtime/device/cuda/Kernels.h"

#include <algorithm>
#include <climits>

namespace llmc::cuda {

namespace {

const llmc_cuda_kernel_v1 &kernelOf(const llmc_variant_v1 &variant) {
  return *static_cast<const llmc_cuda_kernel_v1 *>(variant.kernel);
}

// CUtensorMapDataType of enum llmc_element.
int tensorMapType(uint32_t element) {
  switch (element) {
  case LLMC_F32:
    return 7; // FLOAT32
  case LLMC_BF16:
    return 9; // BFLOAT16
  case LLMC_F16:
    return 6; // FLOAT16
  case LLMC_I8:
    return 0; // UINT8
  case LLMC_I32:
    return 3; // INT32
  }
  return 1; // UINT16
}

// CUtensorMapSwizzle of a width in bytes.
int tensorMapSwizzle(uint32_t bytes) { return bytes == 32 ? 1 : bytes == 64 ? 2 : bytes == 128 ? 3 : 0; }

constexpr int kL2Promotion128B = 2;

// The driver's log ends in newlines; one line of it is enough for most mistakes, the first four for all.
std::string shortened(std::string log) {
  size_t end = 0;
  for (int lines = 0; lines < 4 && end != std::string::npos; ++lines)
    end = log.find('\n', end + 1);
  if (end != std::string::npos)
    log.resize(end);
  while (!log.empty() && (log.back() == '\n' || log.back() == ' '))
    log.pop_back();
  return log;
}

} // namespace

std::string describe(const llmc_launch_v1 &launch, const llmc_variant_v1 &variant) {
  return "op " + std::to_string(launch.op_id) + " (" + launch.op +
         (launch.layer >= 0 ? ", layer " + std::to_string(launch.layer) : "") + ", kernel " + variant.name + ")";
}

KernelSet::KernelSet(const Gpu &gpu, const llmc_program_v1 &program, bool ptx) : gpu_(gpu) {
  try {
    for (uint32_t i = 0; i < program.num_launches; ++i)
      for (uint32_t v = 0; v < program.launches[i].num_variants; ++v)
        if (!functions_.count(program.launches[i].variants[v].kernel))
          load(program.launches[i].variants[v], ptx);
  } catch (...) {
    unload();
    throw;
  }
}

KernelSet::~KernelSet() { unload(); }

void KernelSet::unload() {
  for (Module module : modules_)
    gpu_.driver().cuModuleUnload(module);
}

Module KernelSet::loadImage(const llmc_variant_v1 &variant, bool ptx) const {
  const llmc_cuda_kernel_v1 &kernel = kernelOf(variant);
  if (ptx && !kernel.ptx)
    throw Error(std::string("kernel ") + variant.name + ": --ptx: the package has no PTX of it");
  const void *image = ptx || !kernel.cubin ? kernel.ptx : kernel.cubin;
  std::string errors(16384, '\0'), remarks(4096, '\0');
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSizeBytes, kJitInfoLogBuffer, kJitInfoLogBufferSizeBytes};
  // The sizes are passed in the place of pointers.
  void *values[] = {errors.data(), reinterpret_cast<void *>(errors.size() - 1), remarks.data(),
                    reinterpret_cast<void *>(remarks.size() - 1)};
  Module module = nullptr;
  const Result result = gpu_.driver().cuModuleLoadDataEx(&module, image, 4, options, values);
  if (result == kSuccess)
    return module;
  std::string log = shortened(errors.c_str());
  if (log.empty())
    log = shortened(remarks.c_str());
  throw DriverError(std::string("kernel ") + variant.name + " (" + (image == kernel.ptx ? "PTX" : "cubin") +
                        "): " + gpu_.driver().describe(result, "cuModuleLoadDataEx") + (log.empty() ? "" : ": " + log),
                    result);
}

void KernelSet::load(const llmc_variant_v1 &variant, bool ptx) {
  const llmc_cuda_kernel_v1 &kernel = kernelOf(variant);
  const std::string name = std::string("kernel ") + variant.name;
  if (kernel.shared_bytes > unsigned(gpu_.sharedMemoryLimit()))
    throw Error(name + ": expected at most " + std::to_string(gpu_.sharedMemoryLimit()) + " bytes of shared memory on " +
                gpu_.name() + ", got " + std::to_string(kernel.shared_bytes));
  modules_.push_back(loadImage(variant, ptx));
  Function function = nullptr;
  const Driver &driver = gpu_.driver();
  driver.check(driver.cuModuleGetFunction(&function, modules_.back(), variant.name),
               (name + ": cuModuleGetFunction").c_str());
  if (kernel.shared_bytes) // more than 48 KiB must be asked for
    driver.check(driver.cuFuncSetAttribute(function, kMaxDynamicSharedSizeBytes, int(kernel.shared_bytes)),
                 (name + ": cuFuncSetAttribute").c_str());
  functions_[variant.kernel] = {function, kernel.persistent ? atATime(function, kernel, name) : INT_MAX};
}

/// Units of the kernel that the card runs at a time.
uint64_t KernelSet::atATime(Function function, const llmc_cuda_kernel_v1 &kernel, const std::string &name) const {
  int each = 0;
  const Driver &driver = gpu_.driver();
  driver.check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, int(kernel.threads), kernel.shared_bytes),
               (name + ": cuOccupancyMaxActiveBlocksPerMultiprocessor").c_str());
  if (each < 1)
    throw Error(name + ": expected room for a CTA of " + std::to_string(kernel.threads) + " threads on a multiprocessor of " +
                gpu_.name() + ", got none");
  return std::max<uint64_t>(1, uint64_t(each) * uint64_t(gpu_.multiprocessors()) / kernel.persistent);
}

LaunchList::LaunchList(const Gpu &gpu, const llmc_program_v1 &program, const KernelSet &kernels, const ProgramBases &bases)
    : gpu_(gpu), program_(program), step_(bases.step), launches_(program.num_launches) {
  for (uint32_t i = 0; i < program.num_launches; ++i) {
    const llmc_launch_v1 &source = program.launches[i];
    Launch &launch = launches_[i];
    bind(launch, source, bases);
    for (uint32_t v = 0; v < source.num_variants; ++v) {
      const llmc_cuda_kernel_v1 &kernel = kernelOf(source.variants[v]);
      const unsigned together = std::max(1u, kernel.persistent);
      Form form{kernels.function(source.variants[v]), kernel.threads, kernel.shared_bytes, together, kernels.most(source.variants[v]), {}, {}};
      form.maps.resize(kernel.num_tensor_maps);
      for (Pointer &arg : launch.args)
        form.parameters.push_back(&arg);
      form.parameters.push_back(&launch.rows);
      if (kernel.persistent)
        form.parameters.push_back(&launch.units);
      for (uint32_t t = 0; t < kernel.num_tensor_maps; ++t) {
        const llmc_tensor_map_v1 &map = kernel.tensor_maps[t];
        try {
          encode(form.maps[t], map, launch.args[map.arg]);
        } catch (const Error &error) {
          throw Error(describe(source, source.variants[v]) + ": tensor map " + std::to_string(t) + ": " + error.what());
        }
        form.parameters.push_back(&form.maps[t]);
      }
      launch.forms.push_back(std::move(form)); // moves the vectors, not what they hold
    }
  }
}

void LaunchList::bind(Launch &launch, const llmc_launch_v1 &source, const ProgramBases &bases) const {
  launch.args.resize(source.num_args);
  for (uint32_t a = 0; a < source.num_args; ++a) {
    const llmc_arg_v1 &arg = source.args[a];
    switch (arg.kind) {
    case LLMC_ARG_ARENA:
      launch.args[a] = bases.arena + arg.value;
      break;
    case LLMC_ARG_WEIGHT:
      launch.args[a] = bases.weights + arg.value;
      break;
    case LLMC_ARG_KV:
      launch.args[a] = bases.kv + arg.value;
      break;
    default:
      launch.stepArgs.push_back(a);
    }
  }
}

void LaunchList::encode(TensorMap &to, const llmc_tensor_map_v1 &from, Pointer address) const {
  const Driver &driver = gpu_.driver();
  if (!driver.cuTensorMapEncodeTiled)
    throw Error("the CUDA driver is too old: it has no function cuTensorMapEncodeTiled");
  const uint32_t steps[5] = {1, 1, 1, 1, 1};
  driver.check(driver.cuTensorMapEncodeTiled(&to, tensorMapType(from.element), from.rank,
                                             reinterpret_cast<void *>(address), from.dims,
                                             from.strides + 1, // the innermost is implied
                                             from.box, steps, 0, tensorMapSwizzle(from.swizzle), kL2Promotion128B, 0),
               "cuTensorMapEncodeTiled");
}

LaunchList::Call LaunchList::prepare(uint32_t index, const StepBuffers &buffers, const LaunchPlan &plan) {
  const llmc_launch_v1 &source = program_.launches[index];
  Launch &launch = launches_[index];
  launch.rows = plan.rows;
  launch.units = int64_t(plan.units);
  for (uint32_t a : launch.stepArgs) {
    auto *host = static_cast<const std::byte *>(buffers.field(source.args[a].value, plan.variant->row_block));
    launch.args[a] = host ? step_ + uint64_t(host - buffers.data()) : 0;
  }
  if (plan.units > INT_MAX)
    throw Error("expected at most " + std::to_string(INT_MAX) + " units in a launch, got " + std::to_string(plan.units));
  Form &form = launch.forms[size_t(plan.variant - source.variants)];
  const unsigned grid = unsigned(std::min<uint64_t>(plan.units, form.most) * form.together);
  return {form, grid, grid == 1 || form.most * form.together <= unsigned(gpu_.multiprocessors())};
}

bool LaunchList::launch(uint32_t index, const StepBuffers &buffers, const LaunchPlan &plan, bool early) {
  if (plan.units == 0)
    return false;
  auto [form, grid, spreads] = prepare(index, buffers, plan);
  LaunchAttribute attribute{kProgrammaticStreamSerialization, {}, {}};
  attribute.value.number = 1;
  const LaunchConfig config{grid, 1, 1, form.threads, 1, 1, form.sharedBytes, gpu_.stream(), &attribute,
                            early && spreads ? 1u : 0u};
  const Driver &driver = gpu_.driver();
  driver.check(driver.cuLaunchKernelEx(&config, form.function, form.parameters.data(), nullptr), "cuLaunchKernelEx");
  return true;
}

KernelNode LaunchList::Call::node() const {
  return {form.function, grid, 1, 1, form.threads, 1, 1, form.sharedBytes, form.parameters.data(), nullptr, nullptr, nullptr};
}

void LaunchList::update(GraphExec graph, GraphNode node, uint32_t index, const StepBuffers &buffers, const LaunchPlan &plan) {
  const KernelNode now = prepare(index, buffers, plan).node();
  const Driver &driver = gpu_.driver();
  driver.check(driver.cuGraphExecKernelNodeSetParams(graph, node, &now), "cuGraphExecKernelNodeSetParams");
}

GraphNode LaunchList::add(Graph graph, GraphNode previous, uint32_t index, const StepBuffers &buffers, const LaunchPlan &plan) {
  if (plan.units == 0)
    return nullptr;
  const Call call = prepare(index, buffers, plan);
  const KernelNode node = call.node();
  const Driver &driver = gpu_.driver();
  GraphNode result = nullptr;
  driver.check(driver.cuGraphAddKernelNode(&result, graph, nullptr, 0, &node), "cuGraphAddKernelNode");
  if (previous)
    driver.check(driver.cuGraphAddDependencies(graph, &previous, &result, call.spreads ? &kProgrammaticEdge : &kFullEdge, 1),
                 "cuGraphAddDependencies");
  return result;
}

} // namespace llmc::cuda
