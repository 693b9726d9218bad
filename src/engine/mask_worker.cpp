#include "engine/mask_worker.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ingle {
namespace {

constexpr size_t kBits = 32; // of a word of a mask

Status of_grammar(Status status) {
  return status.is_ok() ? status : std::move(status).with_context("grammar");
}

} // namespace

MaskWorker::~MaskWorker() {
  thread_.request_stop();
  {
    const MutexLock lock(mutex_);
    queue_.clear();
  }
  changed_.notify_all();
}

void MaskWorker::start(std::shared_ptr<Job> job) {
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  {
    const MutexLock lock(mutex_);
    job->is_done = false;
    queue_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void MaskWorker::wait(const Job& job) {
  const MutexLock lock(mutex_);
  while (!job.is_done) {
    changed_.wait(mutex_);
  }
}

void MaskWorker::run(const std::stop_token& stop) {
  for (;;) {
    std::shared_ptr<Job> job;
    {
      const MutexLock lock(mutex_);
      while (queue_.empty()) {
        if (stop.stop_requested()) {
          return;
        }
        changed_.wait(mutex_);
      }
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    compute(*job);
    {
      const MutexLock lock(mutex_);
      job->is_done = true;
    }
    changed_.notify_all();
  }
}

void MaskWorker::compute(Job& job) {
  if (job.matcher == nullptr) {
    auto matcher = job.grammar->make_matcher();
    if (!matcher.is_ok()) {
      job.status = matcher.status();
      return;
    }
    job.matcher = std::move(matcher).value();
  }
  job.status = job.matcher->mask(job.bits);
}

RowGrammar::RowGrammar(
    std::shared_ptr<const Grammar> grammar,
    size_t vocab_size,
    MaskWorker& worker)
    : job_(std::make_shared<MaskWorker::Job>()), worker_(worker) {
  job_->grammar = std::move(grammar);
  job_->bits.resize((vocab_size + kBits - 1) / kBits);
}

Result<bool> RowGrammar::apply(
    std::span<float> logits,
    std::span<const TokenId> never) {
  constexpr float kImpossible = -std::numeric_limits<float>::infinity();
  worker_.wait(*job_);
  INGLE_RETURN_IF_ERROR(of_grammar(job_->status));
  for (const TokenId id : never) {
    logits[static_cast<size_t>(id)] = kImpossible;
  }
  bool is_one_left = false;
  for (size_t begin = 0; begin < logits.size(); begin += kBits) {
    const size_t word = begin / kBits;
    const uint32_t bits = word < job_->bits.size() ? job_->bits[word] : 0;
    const size_t count = std::min(kBits, logits.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      float& logit = logits[begin + i];
      if ((bits >> i & 1) == 0) {
        logit = kImpossible;
      } else if (logit != kImpossible) {
        is_one_left = true; // also one that is not a number: sample() says so
      }
    }
  }
  return is_one_left || !job_->matcher->is_complete();
}

Status RowGrammar::accept(TokenId token) {
  return of_grammar(job_->matcher->accept(token));
}

} // namespace ingle
