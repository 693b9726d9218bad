#include "api/answer_json.h"

#include <utility>

#include "api/error_body.h"

namespace ingle {
namespace {

Json usage_of(const GenerationStats& stats) {
  Json usage;
  usage["prompt_tokens"] = stats.prompt_tokens;
  usage["completion_tokens"] = stats.generated_tokens;
  usage["total_tokens"] = stats.prompt_tokens + stats.generated_tokens;
  usage["prompt_tokens_details"]["cached_tokens"] = stats.cached_tokens;
  return usage;
}

} // namespace

std::string event_of(const Json& value) {
  return "data: " + to_text(value) + "\n\n";
}

std::string failure_event(const Status& status) {
  return "data: " + error_body(status) + "\n\n";
}

ChunkWriter::ChunkWriter(
    AnswerIdentity identity,
    std::string_view id_prefix,
    std::string_view object,
    bool include_usage)
    : identity_(std::move(identity)),
      id_prefix_(id_prefix),
      object_(object),
      include_usage_(include_usage) {}

Json ChunkWriter::head(std::string_view object, Json choices) const {
  Json head;
  head["id"] = std::string(id_prefix_) + identity_.uuid;
  head["object"] = object;
  head["created"] = identity_.created;
  head["model"] = identity_.model;
  head["choices"] = std::move(choices);
  return head;
}

std::string ChunkWriter::chunk(Json choice) const {
  Json chunk = head(object_, Json::array({std::move(choice)}));
  if (include_usage_) {
    chunk["usage"] = nullptr;
  }
  return event_of(chunk);
}

std::string ChunkWriter::last(Json choice, const GenerationEnd& end) const {
  Json finish = head(object_, Json::array({std::move(choice)}));
  std::string events;
  if (include_usage_) {
    finish["usage"] = nullptr;
    Json usage = head(object_, Json::array());
    usage["usage"] = usage_of(end.stats);
    events = event_of(finish) + event_of(usage);
  } else {
    finish["usage"] = usage_of(end.stats);
    events = event_of(finish);
  }
  events += kDoneEvent;
  return events;
}

std::string ChunkWriter::whole(
    std::string_view object,
    Json choice,
    const GenerationEnd& end) const {
  Json body = head(object, Json::array({std::move(choice)}));
  body["usage"] = usage_of(end.stats);
  return to_text(body);
}

} // namespace ingle
