//===- Completion.cpp -----------------------------------------------------===//
#include "runtime/server/Completion.h"
#include "runtime/tool/ResponseOutput.h"

#include <ctime>
#include <utility>

namespace llmc {

static double seconds(Completion::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

Completion::Completion(CompletionRequest request, std::string id, const Tokenizer &tokenizer, Latencies &latencies, Clock::time_point arrival,
                       Notify notify)
    : request_(std::move(request)), id_(std::move(id)), tokenizer_(tokenizer), created_(std::time(nullptr)), latencies_(latencies),
      arrival_(arrival), notify_(std::move(notify)), last_(size_t(request_.choices)), ends_(size_t(request_.choices)),
      pending_(size_t(request_.choices)), open_(size_t(request_.choices)) {
  for (int64_t i = 0; i < request_.choices; ++i)
    choices_.push_back(std::make_unique<Choice>(tokenizer, request_.request.sampling, &request_.answer));
}

void Completion::submit(EngineThread &engine) {
  engine_ = &engine;
  std::vector<Request> requests = request_.requests();
  try {
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].onToken = [self = shared_from_this(), i](const SampledToken &t) { return self->token(i, t); };
      requests[i].onEnd = [self = shared_from_this(), i](const Sequence &s) { self->end(i, s); };
      tickets_.push_back(engine.submit(std::move(requests[i])));
    }
  } catch (...) {
    cancel("");
    throw;
  }
}

void Completion::cancel(const std::string &why) {
  {
    std::lock_guard lock(mutex_);
    if (why_.empty())
      why_ = why;
  }
  cancelled_ = true;
  for (EngineThread::Ticket ticket : tickets_)
    engine_->cancel(ticket);
}

bool Completion::token(size_t i, const SampledToken &token) {
  if (cancelled_)
    return false;
  const Clock::time_point now = Clock::now();
  const bool first = last_[i] == Clock::time_point();
  const double waited = seconds(now - (first ? arrival_ : last_[i]));
  last_[i] = now;
  latencies_.change([&](Latencies::Values &v) {
    (first ? v.firstToken : v.interToken).add(waited);
    ++v.tokens;
  });
  const bool more = choices_[i]->feed(token);
  if (!request_.stream)
    return more;
  hand(i);
  return more && !cancelled_;
}

// The connection is told only of what it may not know: one that has not yet taken the last news will find these, too.
void Completion::hand(size_t i) {
  Choice &choice = *choices_[i];
  if (choice.pieces.empty() && choice.probabilities.empty())
    return;
  bool tell = false;
  {
    std::lock_guard lock(mutex_);
    News &news = pending_[i];
    tell = pendingBytes_ == 0;
    for (AnswerPiece &piece : std::exchange(choice.pieces, {})) {
      pendingBytes_ += piece.text.size() + piece.id.size() + 1;
      addPiece(news.pieces, std::move(piece));
    }
    for (TokenRow &row : choice.probabilities) {
      pendingBytes_ += row.size() * sizeof(TokenProbability);
      news.rows.push_back(std::move(row));
    }
    choice.probabilities.clear();
    if (pendingBytes_ > kMostPending && !std::exchange(tooSlow_, true)) {
      cancelled_ = true; // token() says so to the engine
      tell = true;
    }
  }
  if (tell)
    notify_(shared_from_this());
}

void Completion::end(size_t i, const Sequence &s) {
  Choice &choice = *choices_[i];
  choice.finish(s);
  ends_[i] = choice.end(s);
  if (request_.stream)
    hand(i);
  bool tell = request_.stream;
  {
    std::lock_guard lock(mutex_);
    pending_[i].end = ends_[i];
    if (s.finish == Finish::Error && error_.empty())
      error_ = s.error;
    tell |= --open_ == 0;
    if (open_ == 0) {
      const double time = seconds(Clock::now() - arrival_);
      latencies_.change([&](Latencies::Values &v) {
        v.request.add(time);
        v.slowReaders += tooSlow_;
      });
    }
  }
  if (tell)
    notify_(shared_from_this());
}

Completion::State Completion::take() {
  State state;
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < pending_.size() && request_.stream; ++i) {
    News &news = pending_[i];
    if (news.pieces.empty() && news.rows.empty() && !news.end)
      continue;
    news.choice = i;
    state.news.push_back(std::exchange(news, {}));
  }
  pendingBytes_ = 0;
  state.ended = open_ == 0;
  state.tooSlow = tooSlow_;
  state.error = error_.empty() ? why_ : error_;
  state.status = error_.empty() ? 503 : 500;
  return state;
}

nlohmann::ordered_json Completion::body(const std::string &model) const {
  return answerBody(request_, id_, created_, model, tokenizer_, choices_, ends_);
}

} // namespace llmc
