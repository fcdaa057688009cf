//===- StepGraphs.cpp -----------------------------------------------------===//
#include "runtime/device/cuda/StepGraphs.h"

#include <algorithm>

namespace llmc::cuda {

StepGraphs::~StepGraphs() {
  for (auto &[form, entry] : entries_)
    if (entry.graph)
      gpu_.driver().cuGraphExecDestroy(entry.graph);
}

bool StepGraphs::launch(const StepBuffers &buffers) {
  const Driver &driver = gpu_.driver();
  if (!driver.cuGraphAddDependencies)
    return false;
  auto [it, first] = entries_.try_emplace(buffers.form());
  Entry &entry = it->second;
  entry.used = ++clock_;
  if (first) {
    if (entries_.size() > kMost)
      forgetOldest();
    return false;
  }
  if (entry.refused)
    return false;
  if (!entry.graph)
    entry.graph = make(buffers);
  entry.refused = !entry.graph;
  if (entry.graph)
    driver.check(driver.cuGraphLaunch(entry.graph, gpu_.stream()), "cuGraphLaunch");
  return entry.graph != nullptr;
}

/// Null if there is no memory for it.
GraphExec StepGraphs::make(const StepBuffers &buffers) {
  const Driver &driver = gpu_.driver();
  struct Holder {
    const Driver &driver;
    Graph graph = nullptr;
    ~Holder() { driver.cuGraphDestroy(graph); }
  } holder{driver};
  driver.check(driver.cuGraphCreate(&holder.graph, 0), "cuGraphCreate");
  GraphNode previous = nullptr;
  for (uint32_t i = 0; i < program_.num_launches; ++i)
    if (GraphNode node = launches_.add(holder.graph, previous, i, buffers, buffers.plan(program_.launches[i])))
      previous = node;
  GraphExec result = nullptr;
  const Result made = driver.cuGraphInstantiate(&result, holder.graph, 0);
  if (made == kOutOfMemory)
    return nullptr;
  driver.check(made, "cuGraphInstantiate");
  return result;
}

void StepGraphs::forgetOldest() {
  auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                 [](const auto &x, const auto &y) { return x.second.used < y.second.used; });
  if (oldest->second.graph)
    gpu_.driver().cuGraphExecDestroy(oldest->second.graph);
  entries_.erase(oldest);
}

} // namespace llmc::cuda
