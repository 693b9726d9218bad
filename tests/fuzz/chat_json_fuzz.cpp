// The body of a chat, and the same bytes as the body of every other POST.

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "api/answer.h"
#include "api/error_body.h"
#include "api/testing/fake_served_model.h"
#include "api/text_request.h"
#include "base/log.h"
#include "base/utf8.h"
#include "fuzz/checks.h"

namespace ingle {
namespace {

using nlohmann::json;

AnswerIdentity identity() {
  AnswerIdentity identity;
  identity.uuid = "id";
  identity.model = "tiny";
  identity.created = 1700000000;
  return identity;
}

bool is_between(double value, double low, double high) {
  return value >= low && value <= high; // false for NaN
}

void check_sampling(const SamplingParams& sampling) {
  std::set<TokenId> biased;
  for (const auto& [id, bias] : sampling.logit_bias) {
    check(biased.insert(id).second, "a bias stands once");
    check(std::isfinite(bias), "a bias is finite");
  }
  check(sampling.repetition_penalty >= 0, "a penalty divides or is off");
  for (const float factor :
       {sampling.repetition_penalty,
        sampling.presence_penalty,
        sampling.frequency_penalty}) {
    check(std::isfinite(factor), "a penalty is finite");
  }
  for (const int context :
       {sampling.repetition_context,
        sampling.presence_context,
        sampling.frequency_context}) {
    check(context >= 0, "a context is not negative");
  }
  check(is_between(sampling.temperature, 0, 1e6), "temperature is in range");
  check(is_between(sampling.top_p, 0, 1), "top_p is in range");
  check(is_between(sampling.min_p, 0, 1), "min_p is in range");
  check(sampling.min_tokens_to_keep >= 1, "min_tokens_to_keep is in range");
  check(is_between(sampling.xtc_probability, 0, 1), "xtc_probability fits");
  check(is_between(sampling.xtc_threshold, 0, 0.5), "xtc_threshold fits");
  check(sampling.top_k >= 0, "top_k is not negative");
}

void check_generation(const GenerationRequest& generation, int context) {
  check(!generation.prompt.empty(), "a prompt has tokens");
  check(generation.max_tokens >= 0, "max_tokens is not negative");
  check(
      generation.prompt.size() + static_cast<size_t>(generation.max_tokens) <=
          static_cast<size_t>(context),
      "prompt and answer fit into the context");
  check(
      generation.min_tokens >= 0 &&
          generation.min_tokens <= generation.max_tokens,
      "min_tokens is in range");
  check(generation.stop.size() <= 16, "there are at most 16 stop strings");
  for (const std::string& stop : generation.stop) {
    check(!stop.empty() && is_utf8(stop), "a stop string is text");
  }
  check(generation.top_logprobs.value_or(0) >= 0, "top_logprobs is in range");
  check_sampling(generation.sampling);
}

void check_events(std::string_view events) {
  while (!events.empty()) {
    const size_t end = events.find("\n\n");
    check(end != std::string_view::npos, "an event ends with an empty line");
    std::string_view event = events.substr(0, end);
    check(event.starts_with("data: "), "an event has data");
    event.remove_prefix(6);
    check(event == "[DONE]" || json::accept(event), "an event is JSON");
    events.remove_prefix(end + 2);
  }
}

// A token as the engine gives it out.
GeneratedToken token_of(const GenerationRequest& generation, TokenId id) {
  GeneratedToken token;
  token.id = id;
  token.logprob = -0.5F;
  for (int i = 0; i < generation.top_logprobs.value_or(0); ++i) {
    token.top.push_back({i, -0.5F - static_cast<float>(i)});
  }
  return token;
}

PrefillStep prefill_of(const GenerationRequest& generation) {
  PrefillStep step;
  step.total = static_cast<int>(generation.prompt.size());
  step.processed = step.total;
  if (generation.prompt_logprobs) {
    for (size_t i = 1; i < generation.prompt.size(); ++i) {
      step.tokens.push_back(token_of(generation, generation.prompt[i]));
    }
  }
  return step;
}

// The engine refuses other prompts.
bool is_in_vocabulary(const Answer& answer, int vocab_size) {
  return std::all_of(
      answer.generations.begin(),
      answer.generations.end(),
      [vocab_size](const GenerationRequest& generation) {
        return std::all_of(
            generation.prompt.begin(),
            generation.prompt.end(),
            [vocab_size](TokenId id) { return id < vocab_size; });
      });
}

// What the client reads where each choice has one token, half a character.
void check_answer(Answer& answer) {
  std::string wire = answer.writer->begin();
  for (size_t choice = 0; choice < answer.generations.size(); ++choice) {
    const GenerationRequest& generation = answer.generations[choice];
    GenerationDelta delta;
    delta.tokens.push_back(token_of(generation, 0xc3));
    delta.text = "Par\xc3\xads";
    GenerationEnd end;
    end.stats.prompt_tokens = static_cast<int>(generation.prompt.size());
    end.stats.generated_tokens = 1;
    wire += answer.writer->prefill(choice, prefill_of(generation));
    wire += answer.writer->delta(choice, delta);
    wire += answer.writer->end(choice, end);
  }
  if (answer.stream) {
    check_events(wire);
    check(wire.ends_with("data: [DONE]\n\n"), "a stream says that it ends");
  } else {
    check(json::accept(wire), "an answer is JSON");
  }
}

void check_failure(const Status& status) {
  check_status(status, {StatusCode::kInvalidRequest});
  check(http_status(status) == 400, "a bad body is 400");
  check(json::accept(error_body(status)), "an error is JSON");
}

void check_prepared(Result<Answer> answer, const ServedModel& model) {
  if (!answer.is_ok()) {
    check_failure(answer.status());
    return;
  }
  check(
      !answer->generations.empty() && answer->generations.size() <= 128,
      "there are some choices, but not many");
  for (const GenerationRequest& generation : answer->generations) {
    check_generation(generation, model.context_length);
  }
  if (is_in_vocabulary(*answer, model.vocab_size)) {
    check_answer(*answer);
  }
}

void check_text(const Result<std::string>& body) {
  if (body.is_ok()) {
    check(json::accept(*body), "an answer is JSON");
  } else {
    check_failure(body.status());
  }
}

} // namespace
} // namespace ingle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ingle::set_log_level(ingle::LogLevel::kOff);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingle;
  static const auto chat_template =
      std::make_shared<const FakeChatTemplate>(std::string("<s>hello"));
  static const ServedModel model = [] {
    ServedModel made = make_fake_model();
    made.chat_template = chat_template;
    return made;
  }();
  const std::string_view body = input_text(data, size);
  auto chat = prepare_chat(body, model, identity());
  if (chat.is_ok()) {
    check(
        json::accept(chat_template->context()),
        "a template's variables are JSON");
  }
  check_prepared(std::move(chat), model);
  check_prepared(prepare_completion(body, model, identity()), model);
  check_text(tokenize(body, model));
  check_text(detokenize(body, model));
  check_text(apply_template(body, model));
  return 0;
}
