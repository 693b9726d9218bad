// The engine as http/ and cli/ use it: from other threads.
#include "engine/engine.h"

#include <future>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/recording_sink.h"
#include "model/testing/tiny_llama.h"

namespace ingle {
namespace {

class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_tiny_llama(*fs_, "/tiny", {.tokenizer = true}).is_ok());
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(
        write_file(*fs_, join_path("/tiny", name), as_bytes(text)).is_ok());
  }

  void start(EngineOptions options = {}) {
    options.model_folder = "/tiny";
    engine_.emplace(std::move(options), *fs_, clock_);
  }
  void start_and_wait(EngineOptions options = {}) {
    start(std::move(options));
    const Status loaded = engine_->wait_until_loaded();
    ASSERT_TRUE(loaded.is_ok()) << loaded.message();
  }

  static GenerationRequest request(int max_tokens, int salt = 0) {
    GenerationRequest made;
    for (int i = 0; i < 20; ++i) {
      made.prompt.push_back((i * 31 + salt) % 256);
    }
    made.max_tokens = max_tokens;
    made.ignore_eos = true;
    return made;
  }

  Status refusal(GenerationRequest made) {
    const auto sink = std::make_shared<RecordingSink>();
    const Status status = engine_->submit(std::move(made), sink).status();
    EXPECT_EQ(sink->ends(), 0);
    return status;
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
  SystemClock clock_;
  std::optional<Engine> engine_;
};

TEST_F(EngineTest, AnswersOnceLoaded) {
  start_and_wait();
  ASSERT_NE(engine_->model(), nullptr);
  EXPECT_EQ(engine_->model()->name, "tiny");
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(8), sink).is_ok());
  EXPECT_TRUE(sink->wait().status.is_ok());
  EXPECT_EQ(sink->wait().reason, FinishReason::kLength);
  EXPECT_EQ(sink->ids().size(), 8u);
}

TEST_F(EngineTest, TextIsWhatTheTokensDecodeTo) {
  start_and_wait();
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(30), sink).is_ok());
  sink->wait();
  const auto ids = sink->ids();
  const std::string whole = *engine_->model()->tokenizer->decode(ids, true);
  EXPECT_TRUE(whole.starts_with(sink->text()));
  // What is missing is a character that the answer's end has cut.
  std::string rest = whole.substr(sink->text().size());
  while (rest.starts_with("\uFFFD")) {
    rest.erase(0, std::string_view("\uFFFD").size());
  }
  EXPECT_EQ(rest, "");
}

TEST_F(EngineTest, StopStringEndsTheAnswerAndIsNotShown) {
  start_and_wait();
  const auto free_run = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(40), free_run).is_ok());
  free_run->wait();
  const std::string text = free_run->text();
  ASSERT_GT(text.size(), 12u);
  // Cut at a character's start, so that the stop string is UTF-8.
  size_t from = text.size() / 2;
  while ((static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) {
    ++from;
  }
  size_t to = from + 1;
  while (to < text.size() &&
         (static_cast<unsigned char>(text[to]) & 0xC0) == 0x80) {
    ++to;
  }
  const std::string stop = text.substr(from, to - from);

  GenerationRequest made = request(40);
  made.stop = {stop};
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(std::move(made), sink).is_ok());
  EXPECT_EQ(sink->wait().reason, FinishReason::kStop);
  EXPECT_EQ(sink->text(), text.substr(0, text.find(stop)));
  EXPECT_LT(sink->wait().stats.generated_tokens, 40);

  GenerationRequest longer = request(40);
  longer.stop = {stop};
  longer.min_tokens = 40;
  const auto unstopped = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(std::move(longer), unstopped).is_ok());
  EXPECT_EQ(unstopped->wait().reason, FinishReason::kLength);
  EXPECT_EQ(unstopped->text(), text);
}

TEST_F(EngineTest, LoadFailureIsReportedAndNothingIsServed) {
  write("config.json", "{}");
  start();
  EXPECT_EQ(engine_->wait_until_loaded().code(), StatusCode::kCorruption);
  EXPECT_EQ(engine_->model(), nullptr);
  EXPECT_EQ(refusal(request(1)).code(), StatusCode::kCorruption);
}

// The first step is run before the model is announced.
TEST_F(EngineTest, ModelThatCanNotAnswerIsALoadFailure) {
  const std::string path = "/tiny/model.safetensors";
  const auto good = fs_->read(path);
  ASSERT_TRUE(good.is_ok());
  // The last tensor's last values: f32, as NaN.
  write(
      "model.safetensors",
      good->substr(0, good->size() - 64) + std::string(64, '\xFF'));
  start();
  const Status status = engine_->wait_until_loaded();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(
      status.message(),
      "the model's first step failed: the model's logits are not numbers");
  EXPECT_EQ(engine_->model(), nullptr);
  write("model.safetensors", *good);
  start_and_wait();
}

TEST_F(EngineTest, XtcSparesTheEndAndLineBreaks) {
  write("generation_config.json", "{\"eos_token_id\": [7, 3]}");
  start_and_wait();
  const auto model = engine_->model();
  auto expected = *model->tokenizer->encode("\n", false);
  expected.insert(expected.end(), model->eos.begin(), model->eos.end());
  EXPECT_THAT(
      model->xtc_exempt, ::testing::UnorderedElementsAreArray(expected));
  EXPECT_GT(model->xtc_exempt.size(), model->eos.size());
}

TEST_F(EngineTest, PromptProgressReachesTheSink) {
  EngineOptions options;
  options.prefill_chunk = 8;
  start_and_wait(options);
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(1), sink).is_ok());
  sink->wait();
  ASSERT_EQ(sink->prefills().size(), 3u);
  EXPECT_EQ(sink->prefills()[1].processed, 16);
  EXPECT_EQ(sink->prefills()[1].total, 20);
}

TEST_F(EngineTest, TokensThatAreEmptyNullOrNoTextAreNotThere) {
  write(
      "tokenizer_config.json",
      R"({"bos_token":"","eos_token":{"content":"<|im_end|>"},)"
      R"("pad_token":null,"sep_token":3,"unk_token":{},"cls_token":"c"})");
  start_and_wait();
  EXPECT_THAT(
      engine_->model()->special_tokens,
      ::testing::ElementsAre(
          ::testing::Pair("cls_token", "c"),
          ::testing::Pair("eos_token", "<|im_end|>")));
}

TEST_F(EngineTest, TemperatureOfTheFileIsToldFromThatOfAFlag) {
  write("generation_config.json", "{\"temperature\": 0.5}");
  start_and_wait();
  EXPECT_EQ(engine_->model()->defaults.temperature, 0.5f);
  EXPECT_FALSE(engine_->model()->defaults.has_temperature_flag);
  EngineOptions options;
  options.defaults.temperature = 1.5f;
  start_and_wait(options);
  EXPECT_EQ(engine_->model()->defaults.temperature, 1.5f);
  EXPECT_TRUE(engine_->model()->defaults.has_temperature_flag);
}

TEST_F(EngineTest, BrokenTextFilesAreNamed) {
  const std::pair<const char*, const char*> broken[] = {
      {"tokenizer.json", "{\"model\": 3}"},
      {"tokenizer_config.json", "[]"},
      {"generation_config.json", "{"},
      {"generation_config.json", "{\"temperature\": \"hot\"}"},
      {"generation_config.json", "{\"top_k\": 1e300}"},
      {"generation_config.json", "{\"eos_token_id\": 4294967298}"},
      {"chat_template.jinja", "{% for m in messages %}"}};
  for (const auto& [name, text] : broken) {
    const std::string path = join_path("/tiny", name);
    const auto before = fs_->read(path);
    write(name, text);
    start();
    const Status status = engine_->wait_until_loaded();
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << name;
    EXPECT_NE(status.message().find(path), std::string::npos)
        << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    ASSERT_TRUE(fs_->remove(path).is_ok());
    if (before.is_ok()) {
      write(name, *before);
    }
  }
}

TEST_F(EngineTest, FolderWithoutTokenizerIsServedByIds) {
  ASSERT_TRUE(fs_->remove("/tiny/tokenizer.json").is_ok());
  start_and_wait();
  EXPECT_EQ(engine_->model()->tokenizer, nullptr);
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(3), sink).is_ok());
  sink->wait();
  EXPECT_EQ(sink->ids().size(), 3u);
  EXPECT_EQ(sink->text(), "");
}

TEST_F(EngineTest, RefusesWhatCanNotBeGenerated) {
  start_and_wait();
  GenerationRequest empty = request(1);
  empty.prompt.clear();
  EXPECT_EQ(refusal(empty).code(), StatusCode::kInvalidRequest);
  EXPECT_EQ(refusal(request(-1)).where(), "max_tokens");
  GenerationRequest foreign = request(1);
  foreign.prompt.push_back(288);
  EXPECT_NE(refusal(foreign).message().find("288"), std::string::npos);
  EXPECT_EQ(refusal(request(493)).reason(), "context_length_exceeded");
  GenerationRequest hot = request(1);
  hot.sampling.temperature = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal(hot).where(), "temperature");

  const auto sink = std::make_shared<RecordingSink>();
  EXPECT_TRUE(engine_->submit(request(492), sink).is_ok());
}

TEST_F(EngineTest, QueueLimitIsAnOverload) {
  EngineOptions options;
  options.queue_limit = 2;
  start_and_wait(options);
  const auto first = std::make_shared<RecordingSink>();
  const auto second = std::make_shared<RecordingSink>();
  const auto id = engine_->submit(request(400), first);
  ASSERT_TRUE(id.is_ok());
  ASSERT_TRUE(engine_->submit(request(2), second).is_ok());
  EXPECT_EQ(refusal(request(1)).reason(), "queue_full");
  engine_->cancel(*id);
  EXPECT_TRUE(second->wait().status.is_ok());
  const auto third = std::make_shared<RecordingSink>();
  EXPECT_TRUE(engine_->submit(request(1), third).is_ok());
  EXPECT_TRUE(third->wait().status.is_ok());
}

TEST_F(EngineTest, StatsAreExactlyWhatWasAskedAndAnswered) {
  EngineOptions options;
  options.queue_limit = 3;
  start_and_wait(options);
  EXPECT_EQ(engine_->stats().queue_limit, 3u);
  const auto answered = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(5), answered).is_ok());
  EXPECT_TRUE(answered->wait().status.is_ok());
  const auto left = std::make_shared<RecordingSink>();
  const auto id = engine_->submit(request(450, 1), left);
  ASSERT_TRUE(id.is_ok());
  left->wait_for_tokens(3);
  EXPECT_EQ(engine_->stats().decoding, 1u);
  engine_->cancel(*id);
  const GenerationEnd end = left->wait();
  EXPECT_EQ(refusal(request(493)).reason(), "context_length_exceeded");

  const EngineStats stats = engine_->stats();
  const auto generated = static_cast<uint64_t>(end.stats.generated_tokens);
  EXPECT_EQ(stats.prompt_tokens, 40u);
  EXPECT_EQ(stats.cached_tokens, 0u);
  EXPECT_EQ(stats.generated_tokens, 5 + generated);
  // A prompt's step gives a token; each other one gives one more.
  EXPECT_EQ(stats.steps, stats.generated_tokens);
  EXPECT_EQ(stats.finished.length, 1u);
  EXPECT_EQ(stats.finished.cancelled, 1u);
  EXPECT_EQ(stats.finished.stop + stats.finished.failed, 0u);
  ASSERT_EQ(stats.refused.size(), 1u);
  EXPECT_EQ(stats.refused.at("context_length_exceeded"), 1u);
  EXPECT_EQ(stats.queue_wait.count(), 2u);
  EXPECT_EQ(stats.first_token.count(), 2u);
  EXPECT_EQ(stats.between_tokens.count(), stats.generated_tokens - 2);
  EXPECT_EQ(stats.request.count(), 2u);
  EXPECT_EQ(stats.queued + stats.running(), 0u);
  EXPECT_GE(stats.request.sum(), stats.first_token.sum());
}

TEST_F(EngineTest, CancelEndsARunningGenerationSoon) {
  start_and_wait();
  const auto sink = std::make_shared<RecordingSink>();
  const auto id = engine_->submit(request(450), sink);
  ASSERT_TRUE(id.is_ok());
  sink->wait_for_tokens(3);
  engine_->cancel(*id);
  EXPECT_EQ(sink->wait().reason, FinishReason::kCancelled);
  EXPECT_LT(sink->ids().size(), 450u);
  engine_->cancel(*id); // again: no effect
  const auto next = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(2), next).is_ok());
  EXPECT_TRUE(next->wait().status.is_ok());
  EXPECT_EQ(sink->ends(), 1);
}

TEST_F(EngineTest, StopGivesEverySinkItsEnd) {
  start_and_wait();
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 4; ++i) {
    sinks.push_back(std::make_shared<RecordingSink>());
    ASSERT_TRUE(engine_->submit(request(450, i), sinks.back()).is_ok());
  }
  sinks[0]->wait_for_tokens(1);
  engine_->stop();
  for (const auto& sink : sinks) {
    EXPECT_EQ(sink->ends(), 1);
    EXPECT_EQ(sink->wait().reason, FinishReason::kCancelled);
  }
  EXPECT_EQ(refusal(request(1)).reason(), "server_stopping");
}

// Acceptance 87.
TEST_F(EngineTest, busy_means_any_work) {
  start_and_wait();
  EXPECT_FALSE(engine_->is_busy());
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(30), sink).is_ok());
  EXPECT_TRUE(engine_->is_busy());
  bool was_busy = false;
  size_t tokens = 0;
  const Status status = engine_->run_exclusively(
      [&] {
        was_busy = engine_->is_busy();
        tokens = sink->ids().size();
      },
      std::chrono::minutes(1));
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_TRUE(was_busy) << "with exclusive work alone";
  EXPECT_EQ(tokens, 30u) << "what was queued before it has ended";

  const auto last = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(30), last).is_ok());
  engine_->wait_until_idle();
  EXPECT_FALSE(engine_->is_busy());
  EXPECT_EQ(last->ends(), 1);
}

TEST_F(EngineTest, ExclusiveWorkIsGivenUpInTimeAndOthersGoOn) {
  start_and_wait();
  std::promise<void> release;
  const auto released = release.get_future().share();
  const auto running =
      std::make_shared<RecordingSink>([released](TokenId) { released.wait(); });
  ASSERT_TRUE(engine_->submit(request(450), running).is_ok());
  running->wait_for_tokens(1); // the engine's thread is held up
  auto status = std::async(std::launch::async, [&] {
    return engine_->run_exclusively(
        [] { FAIL(); }, std::chrono::milliseconds(0));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto behind = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request(3, 1), behind).is_ok());
  release.set_value();
  EXPECT_EQ(status.get().reason(), "engine_busy");
  EXPECT_TRUE(behind->wait().status.is_ok());
  EXPECT_EQ(running->wait().stats.generated_tokens, 450);
}

TEST_F(EngineTest, StopWhileLoadingEndsTheLoad) {
  for (int i = 0; i < 20; ++i) {
    start();
    engine_->request_stop();
    static_cast<void>(engine_->wait_until_loaded());
    engine_.reset();
  }
}

TEST_F(EngineTest, RequestsFromManyThreadsEqualThemselvesAlone) {
  start_and_wait();
  constexpr int kThreads = 4;
  constexpr int kEach = 4;
  std::vector<std::vector<TokenId>> alone;
  for (int salt = 0; salt < kThreads; ++salt) {
    const auto sink = std::make_shared<RecordingSink>();
    ASSERT_TRUE(engine_->submit(request(10, salt), sink).is_ok());
    sink->wait();
    alone.push_back(sink->ids());
  }
  std::vector<std::thread> threads;
  for (int salt = 0; salt < kThreads; ++salt) {
    threads.emplace_back([&, salt] {
      for (int i = 0; i < kEach; ++i) {
        const auto sink = std::make_shared<RecordingSink>();
        ASSERT_TRUE(engine_->submit(request(10, salt), sink).is_ok());
        sink->wait();
        EXPECT_EQ(sink->ids(), alone[static_cast<size_t>(salt)]);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

} // namespace
} // namespace ingle
