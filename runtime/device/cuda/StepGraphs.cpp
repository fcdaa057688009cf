//===- StepGraphs.cpp -----------------------------------------------------===//
#include "runtime/device/cuda/StepGraphs.h"

#include <algorithm>
#include <numeric>

namespace llmc::cuda {

StepGraphs::Handle::~Handle() {
  if (graph_)
    gpu_.driver().cuGraphExecDestroy(graph_);
  if (source_)
    gpu_.driver().cuGraphDestroy(source_);
}

void StepGraphs::Handle::launch() const {
  gpu_.driver().check(gpu_.driver().cuGraphLaunch(graph_, gpu_.stream()), "cuGraphLaunch");
}

LaunchPlan StepGraphs::planOf(const StepBuffers &buffers, uint32_t launch, bool rest) const {
  return rest ? buffers.rest(program_.launches[launch]) : buffers.plan(program_.launches[launch]);
}

bool StepGraphs::launch(const StepBuffers &buffers) {
  if (!available())
    return false;
  auto [it, first] = entries_.try_emplace(buffers.form());
  Entry &entry = it->second;
  entry.used = ++clock_;
  if (first && entries_.size() > kMost)
    forgetOldest();
  if (entry.plain < kPlain)
    return ++entry.plain, false;
  if (!entry.graph) {
    std::vector<uint32_t> all(program_.num_launches);
    std::iota(all.begin(), all.end(), 0u);
    entry.graph.emplace(make(buffers, all));
    entry.contexts = buffers.contexts();
  }
  if (!*entry.graph)
    return false;
  update(entry, buffers);
  entry.graph->launch();
  return true;
}

StepGraphs::Handle StepGraphs::make(const StepBuffers &buffers, std::span<const uint32_t> launches) {
  const Driver &driver = gpu_.driver();
  struct Holder {
    const Driver &driver;
    Graph graph = nullptr;
    ~Holder() {
      if (graph)
        driver.cuGraphDestroy(graph);
    }
  } holder{driver};
  driver.check(driver.cuGraphCreate(&holder.graph, 0), "cuGraphCreate");
  GraphNode previous = nullptr;
  Handle result(gpu_);
  for (uint32_t i : launches) {
    for (bool rest : {false, true}) {
      GraphNode node = launches_.add(holder.graph, previous, i, buffers, planOf(buffers, i, rest));
      if (!node)
        continue;
      previous = node;
      if (StepBuffers::readsContexts(program_.launches[i]))
        result.readers_.push_back({i, rest, node});
    }
  }
  const Result made = driver.cuGraphInstantiate(&result.graph_, holder.graph, 0);
  if (made != kOutOfMemory) // steps go on without
    driver.check(made, "cuGraphInstantiate");
  if (result.graph_ && !result.readers_.empty())
    result.source_ = std::exchange(holder.graph, nullptr);
  return result;
}

void StepGraphs::update(Entry &entry, const StepBuffers &buffers) {
  StepBuffers::Form contexts = buffers.contexts();
  if (contexts == entry.contexts)
    return;
  for (auto [launch, rest, node] : entry.graph->readers_)
    launches_.update(entry.graph->graph_, node, launch, buffers, planOf(buffers, launch, rest));
  entry.contexts = std::move(contexts);
}

void StepGraphs::forgetOldest() {
  entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                  [](const auto &x, const auto &y) { return x.second.used < y.second.used; }));
}

} // namespace llmc::cuda
