#include "api/stats_body.h"

#include "api/json_reader.h"

namespace ingle {
namespace {

Json server_object(
    std::string_view version,
    std::chrono::seconds started,
    const ServedModel* model) {
  Json object;
  object["owner"] = "ingle";
  object["version"] = version;
  object["model"] = model == nullptr ? Json(nullptr) : Json(model->name);
  object["started_at"] = started.count();
  return object;
}

Json admission_object(const ServedModel* model, const EngineStats& stats) {
  Json object;
  object["max_safe_context"] =
      model == nullptr ? Json(nullptr) : Json(model->usable_context());
  object["usable_bytes"] =
      stats.usable_bytes ? Json(*stats.usable_bytes) : Json(nullptr);
  object["weights_bytes"] =
      model == nullptr ? Json(nullptr) : Json(model->weight_bytes);
  object["queue_limit"] = stats.queue_limit;
  return object;
}

Json batch_object(const EngineStats& stats) {
  Json object;
  object["configured"] = stats.max_rows;
  object["batched"] = stats.max_rows > 1;
  object["active_rows"] = stats.running();
  object["prefilling_rows"] = stats.prefilling;
  object["decoding_rows"] = stats.decoding;
  object["queued"] = stats.queued;
  object["steps"] = stats.steps;
  return object;
}

Json prompt_cache_object(const PromptCacheFigures& cache) {
  Json object;
  object["entries"] = cache.entries;
  object["bytes"] = cache.bytes;
  object["max_bytes"] = cache.max_bytes;
  object["checkpoint_bytes"] = cache.checkpoint_bytes;
  object["hits"] = cache.hits;
  object["misses"] = cache.misses;
  object["evicted"] = cache.evicted;
  return object;
}

Json kv_object(const EngineStats& stats) {
  Json layers = Json::object();
  for (const auto& [scheme, count] : stats.kv_layers) {
    layers[scheme] = count;
  }
  Json object;
  object["layers"] = std::move(layers);
  return object;
}

Json tokens_object(const EngineStats& stats) {
  Json object;
  object["prompt"] = stats.prompt_tokens;
  object["cached"] = stats.cached_tokens;
  object["generated"] = stats.generated_tokens;
  return object;
}

Json requests_object(const EngineStats& stats) {
  Json finished;
  finished["stop"] = stats.finished.stop;
  finished["length"] = stats.finished.length;
  finished["tool_calls"] = stats.finished.tool_calls;
  finished["cancelled"] = stats.finished.cancelled;
  finished["error"] = stats.finished.failed;
  Json refused = Json::object();
  for (const auto& [code, count] : stats.refused) {
    refused[code] = count;
  }
  Json object;
  object["finished"] = std::move(finished);
  object["refused"] = std::move(refused);
  return object;
}

Json mean_object(const TimeHistogram& times) {
  Json object;
  object["count"] = times.count();
  object["mean_ms"] = times.count() == 0
      ? Json(nullptr)
      : Json(1000 * times.sum() / static_cast<double>(times.count()));
  return object;
}

Json times_object(const EngineStats& stats) {
  Json object;
  object["queue_wait"] = mean_object(stats.queue_wait);
  object["first_token"] = mean_object(stats.first_token);
  object["inter_token"] = mean_object(stats.between_tokens);
  object["request"] = mean_object(stats.request);
  return object;
}

} // namespace

std::string stats_body(
    std::string_view version,
    std::chrono::seconds started,
    const ServedModel* model,
    const EngineStats& stats) {
  Json body;
  body["server"] = server_object(version, started, model);
  body["prompt_cache"] = prompt_cache_object(stats.prompt_cache);
  body["kv_quant"] = kv_object(stats);
  body["admission"] = admission_object(model, stats);
  body["batch"] = batch_object(stats);
  body["tokens"] = tokens_object(stats);
  body["requests"] = requests_object(stats);
  body["times"] = times_object(stats);
  return to_text(body);
}

} // namespace ingle
