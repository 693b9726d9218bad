// A scheduler with a prompt cache, on a tiny model; for tests.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "engine/scheduler.h"
#include "engine/testing/recording_sink.h"
#include "model/load_model.h"
#include "model/testing/tiny_llama.h"

namespace ingle {

// Test: testing::Test, or one with parameters.
template <class Test>
class SchedulerFixture : public Test {
 protected:
  using Sink = std::shared_ptr<RecordingSink>;

  void load_tiny_llama(Numerics numerics) {
    const auto fs = make_memory_file_system();
    ASSERT_TRUE(write_tiny_llama(*fs, "/tiny").is_ok());
    auto model = load_model(*fs, "/tiny", {numerics});
    ASSERT_TRUE(model.is_ok()) << model.status().message();
    model_ = std::move(model).value();
    served_->context_length = 512;
    served_->vocab_size = 288;
  }

  // From now on, and nothing is kept of before.
  void serve(const Model& model, SchedulerOptions options) {
    cache_.clear();
    scheduler_.emplace(model, served_, options, clock_, cache_);
  }

  Sink start(GenerationRequest made, uint64_t seed = 1) {
    return start(std::move(made), std::make_shared<RecordingSink>(), seed);
  }
  Sink start(GenerationRequest made, Sink sink, uint64_t seed = 1) {
    scheduler_->add({++last_id_, std::move(made), seed, sink});
    return sink;
  }
  void run() {
    for (int steps = 0; scheduler_->is_busy(); ++steps) {
      ASSERT_LT(steps, 5000);
      scheduler_->step();
    }
  }
  Sink answer(GenerationRequest made, uint64_t seed = 1) {
    Sink sink = start(std::move(made), seed);
    run();
    return sink;
  }

  SystemClock clock_;
  std::unique_ptr<const Model> model_;
  std::shared_ptr<ServedModel> served_ = std::make_shared<ServedModel>();
  PromptCache cache_{size_t{1} << 30};
  std::optional<Scheduler> scheduler_;
  GenerationId last_id_ = 0;
};

} // namespace ingle
