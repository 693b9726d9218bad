#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/collecting_sink.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/engine_flags.h"
#include "cli/engine_options.h"
#include "cli/json_output.h"
#include "engine/engine.h"

namespace ingle {
namespace {

struct BenchFlags {
  EngineFlags engine;
  int prompt_tokens = 512;
  int max_tokens = 64;
  int repeat = 5;
  bool json = false;
};

// Tokens per second over the runs.
struct Rates {
  std::vector<double> prefill;
  std::vector<double> decode;
};

GenerationRequest make_request(const BenchFlags& flags, int vocab_size) {
  GenerationRequest request;
  // Spread over the vocabulary, and the same in every run.
  for (int i = 0; i < flags.prompt_tokens; ++i) {
    request.prompt.push_back(
        static_cast<TokenId>((int64_t{i} * 7919 + 11) % vocab_size));
  }
  request.max_tokens = flags.max_tokens;
  request.ignore_eos = true;
  return request;
}

Result<Rates> measure(const Environment& env, const BenchFlags& flags) {
  ProgressBar loading("loading", env.clock);
  INGLE_ASSIGN_OR_RETURN(
      auto options, engine_options(env, flags.engine, loading));
  Engine engine(std::move(options), env.fs, env.clock);
  INGLE_RETURN_IF_ERROR(engine.wait_until_loaded());
  loading.finish();
  const int vocab_size = engine.model()->vocab_size;
  Rates rates;
  for (int i = 0; i <= flags.repeat; ++i) {
    const auto sink = std::make_shared<CollectingSink>();
    INGLE_RETURN_IF_ERROR(
        engine.submit(make_request(flags, vocab_size), sink).status());
    const GenerationEnd end = sink->wait();
    INGLE_RETURN_IF_ERROR(end.status);
    if (i == 0) {
      continue; // warm-up
    }
    rates.prefill.push_back(
        end.stats.prompt_tokens * 1000 / end.stats.prefill_ms);
    rates.decode.push_back(
        (end.stats.generated_tokens - 1) * 1000 / end.stats.decode_ms);
  }
  return rates;
}

struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
};

Summary summarise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

std::string describe(const char* name, const Summary& summary) {
  char line[128];
  std::snprintf(
      line,
      sizeof(line),
      "%-8s %8.1f tokens/s (min %.1f, max %.1f)",
      name,
      summary.median,
      summary.min,
      summary.max);
  return line;
}

nlohmann::ordered_json to_json(const Summary& summary) {
  return {
      {"median", summary.median}, {"min", summary.min}, {"max", summary.max}};
}

Status bench(const Environment& env, const BenchFlags& flags) {
  INGLE_ASSIGN_OR_RETURN(const Rates rates, measure(env, flags));
  const Summary prefill = summarise(rates.prefill);
  const Summary decode = summarise(rates.decode);
  if (flags.json) {
    nlohmann::ordered_json result;
    result["prompt_tokens"] = flags.prompt_tokens;
    result["max_tokens"] = flags.max_tokens;
    result["repeat"] = flags.repeat;
    result["prefill_tokens_per_second"] = to_json(prefill);
    result["decode_tokens_per_second"] = to_json(decode);
    print_json(result);
  } else {
    print_line(describe("prefill", prefill));
    print_line(describe("decode", decode));
  }
  return Status::ok();
}

} // namespace

void add_bench(CLI::App& app, const Environment& env, Run& run) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure prefill and decode speed");
  add_engine_flags(*command, flags->engine);
  command
      ->add_option("--prompt-tokens", flags->prompt_tokens, "Length of prompt")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--max-tokens", flags->max_tokens, "Length of the answer")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 20));
  command->add_option("--repeat", flags->repeat, "Runs after one warm-up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->footer("Example: ingle bench --prompt-tokens 2048 --repeat 3");
  command->callback([&env, &run, flags] {
    run = [&env, flags] {
      const Status status = bench(env, *flags);
      return status.is_ok() ? 0 : report(status);
    };
  });
}

} // namespace ingle
