//===- EngineThread.cpp ---------------------------------------------------===//
#include "runtime/engine/EngineThread.h"
#include "llmc/Support/Error.h"
#include "runtime/engine/Seconds.h"

#include <exception>
#include <utility>

namespace llmc {

EngineMetrics &EngineMetrics::operator+=(const EngineMetrics &other) {
  for (uint64_t EngineMetrics::*count : {&EngineMetrics::submitted, &EngineMetrics::finished, &EngineMetrics::cancelled, &EngineMetrics::failed,
                                         &EngineMetrics::promptTokens, &EngineMetrics::cachedTokens, &EngineMetrics::generatedTokens, &EngineMetrics::steps,
                                         &EngineMetrics::preemptions, &EngineMetrics::running, &EngineMetrics::waiting, &EngineMetrics::blocks,
                                         &EngineMetrics::freeBlocks, &EngineMetrics::cached})
    this->*count += other.*count;
  stepSeconds += other.stepSeconds;
  return *this;
}

EngineThread::EngineThread(Device &device, const EngineOptions &options) : engine_(device, options) {
  count();
  thread_ = std::thread([this] { loop(); });
}

EngineThread::~EngineThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  thread_.join();
}

EngineThread::Ticket EngineThread::submit(Request request) {
  engine_.check(request); // reads what does not change
  std::lock_guard lock(mutex_);
  if (!failure_.empty())
    throw Error(failure_);
  if (stop_)
    throw Error("the engine is being shut down");
  ++metrics_.submitted;
  const Ticket ticket = next_++;
  orders_.push_back({ticket, std::move(request)});
  work_.notify_one();
  return ticket;
}

void EngineThread::cancel(Ticket ticket) {
  std::lock_guard lock(mutex_);
  orders_.push_back({ticket, std::nullopt});
  work_.notify_one();
}

EngineMetrics EngineThread::metrics() const {
  std::lock_guard lock(mutex_);
  return metrics_;
}

std::string EngineThread::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

// Publishes the thread's numbers; `submitted` is the callers'.
void EngineThread::count() {
  const Scheduler &scheduler = engine_.scheduler();
  now_.steps = scheduler.steps();
  now_.preemptions = scheduler.preemptions();
  now_.running = scheduler.running();
  now_.waiting = scheduler.waiting();
  now_.blocks = engine_.blocks().total();
  now_.freeBlocks = engine_.blocks().available();
  now_.cached = engine_.blocks().cache().cached();
  std::lock_guard lock(mutex_);
  const uint64_t submitted = metrics_.submitted;
  metrics_ = now_;
  metrics_.submitted = submitted;
}

void EngineThread::ended(Ticket ticket, const Sequence &s) {
  ++(s.finish == Finish::Cancelled ? now_.cancelled : s.finish == Finish::Error ? now_.failed : now_.finished);
  now_.promptTokens += s.promptLength;
  now_.cachedTokens += s.cached;
  now_.generatedTokens += s.generated();
  active_.erase(ticket);
}

void EngineThread::obey(std::vector<Order> &orders) {
  for (Order &order : orders) {
    if (!order.request) {
      if (auto at = active_.find(order.ticket); at != active_.end())
        engine_.cancel(std::shared_ptr(at->second)); // its end takes it out of the map
      continue;
    }
    auto told = std::move(order.request->onEnd);
    order.request->onEnd = [this, ticket = order.ticket, told = std::move(told)](const Sequence &s) {
      ended(ticket, s);
      if (told)
        told(s);
    };
    std::shared_ptr<Sequence> sequence = engine_.submit(std::move(*order.request));
    if (sequence->finish == Finish::None)
      active_.emplace(order.ticket, std::move(sequence));
  }
  orders.clear();
}

// The device has failed: nothing can go on.
void EngineThread::fail(const std::string &message) {
  std::vector<Order> orders;
  {
    std::lock_guard lock(mutex_);
    failure_ = message;
    orders.swap(orders_);
  }
  obey(orders);
  while (!active_.empty())
    engine_.fail(std::shared_ptr(active_.begin()->second), message);
}

void EngineThread::loop() {
  std::vector<Order> orders;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return stop_ || !orders_.empty() || !active_.empty(); });
      orders.swap(orders_);
      if (stop_)
        break;
    }
    try {
      obey(orders);
      const auto start = std::chrono::steady_clock::now();
      if (engine_.step()) {
        now_.stepSeconds.add(secondsSince(start));
        engine_.device().startBackground();
      }
    } catch (const std::exception &error) {
      fail(error.what());
    }
    count();
  }
  obey(orders);
  while (!active_.empty())
    engine_.cancel(std::shared_ptr(active_.begin()->second));
  count();
}

} // namespace llmc
