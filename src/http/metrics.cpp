#include "http/metrics.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace ingle {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// A value, and what tells it from others of its family; nothing: it is alone.
struct Labelled {
  std::string label;
  uint64_t value = 0;
};

MetricFamily family(std::string name, std::string help, MetricType type) {
  MetricFamily made;
  made.name = std::move(name);
  made.help = std::move(help);
  made.type = type;
  return made;
}

MetricFamily gauge(std::string name, std::string help, uint64_t value) {
  MetricFamily made =
      family(std::move(name), std::move(help), MetricType::Gauge);
  made.metric.emplace_back().gauge.value = static_cast<double>(value);
  return made;
}

MetricFamily counters(
    std::string name,
    std::string help,
    const std::string& label,
    const std::vector<Labelled>& values) {
  MetricFamily made =
      family(std::move(name), std::move(help), MetricType::Counter);
  for (const Labelled& each : values) {
    ClientMetric& metric = made.metric.emplace_back();
    metric.counter.value = static_cast<double>(each.value);
    if (!label.empty()) {
      metric.label.push_back({label, each.label});
    }
  }
  return made;
}

MetricFamily counter(std::string name, std::string help, uint64_t value) {
  return counters(std::move(name), std::move(help), "", {{"", value}});
}

MetricFamily
histogram(std::string name, std::string help, const TimeHistogram& times) {
  MetricFamily made =
      family(std::move(name), std::move(help), MetricType::Histogram);
  ClientMetric::Histogram& told = made.metric.emplace_back().histogram;
  told.sample_count = times.count();
  told.sample_sum = times.sum();
  uint64_t below = 0;
  for (size_t i = 0; i < times.counts().size(); ++i) {
    below += times.counts()[i];
    told.bucket.push_back(
        {below,
         i < times.bounds().size() ? times.bounds()[i]
                                   : std::numeric_limits<double>::infinity()});
  }
  return made;
}

void add_gauges(std::vector<MetricFamily>& families, const EngineStats& stats) {
  families.push_back(gauge(
      "ingle_requests_queued",
      "Generations of whose prompt nothing is read yet",
      stats.queued));
  families.push_back(gauge(
      "ingle_requests_prefilling",
      "Generations whose prompt is being read",
      stats.prefilling));
  families.push_back(gauge(
      "ingle_requests_decoding",
      "Generations whose answer is being written",
      stats.decoding));
  families.push_back(gauge(
      "ingle_rows_max",
      "Generations that run at the same time at most",
      static_cast<uint64_t>(stats.max_rows)));
}

void add_prompt_cache(
    std::vector<MetricFamily>& families,
    const PromptCacheFigures& cache) {
  families.push_back(gauge(
      "ingle_prompt_cache_entries",
      "Sequences that the prompt cache keeps in memory",
      cache.entries));
  families.push_back(gauge(
      "ingle_prompt_cache_bytes",
      "Memory that the prompt cache takes",
      cache.bytes));
  families.push_back(gauge(
      "ingle_prompt_cache_max_bytes",
      "Memory that the prompt cache may take",
      cache.max_bytes));
  families.push_back(counter(
      "ingle_prompt_cache_hits_total",
      "Prompts that took a prefix over from the prompt cache",
      cache.hits));
  families.push_back(counter(
      "ingle_prompt_cache_misses_total",
      "Prompts that found nothing to take over",
      cache.misses));
  families.push_back(counter(
      "ingle_prompt_cache_evicted_total",
      "Sequences that made room in the prompt cache",
      cache.evicted));
}

void add_totals(std::vector<MetricFamily>& families, const EngineStats& stats) {
  families.push_back(
      counter("ingle_steps_total", "Steps of the scheduler", stats.steps));
  families.push_back(counter(
      "ingle_prompt_tokens_total",
      "Tokens of prompts that the model has read",
      stats.prompt_tokens));
  families.push_back(counter(
      "ingle_cached_tokens_total",
      "Tokens of prompts that were served from a cache",
      stats.cached_tokens));
  families.push_back(counter(
      "ingle_generated_tokens_total",
      "Tokens that were generated",
      stats.generated_tokens));
  families.push_back(counters(
      "ingle_requests_finished_total",
      "Generations that are over, by how they ended",
      "reason",
      {{"stop", stats.finished.stop},
       {"length", stats.finished.length},
       {"tool_calls", stats.finished.tool_calls},
       {"cancelled", stats.finished.cancelled},
       {"error", stats.finished.failed}}));
  std::vector<Labelled> refused;
  for (const auto& [code, count] : stats.refused) {
    refused.push_back({code, count});
  }
  families.push_back(counters(
      "ingle_requests_refused_total",
      "Generations that were not queued, by the error's code",
      "code",
      refused));
}

void add_times(std::vector<MetricFamily>& families, const EngineStats& stats) {
  families.push_back(histogram(
      "ingle_queue_wait_seconds",
      "From when a generation was queued until it ran",
      stats.queue_wait));
  families.push_back(histogram(
      "ingle_time_to_first_token_seconds",
      "From when a generation was queued to its first token",
      stats.first_token));
  families.push_back(histogram(
      "ingle_inter_token_seconds",
      "From one token of an answer to the next",
      stats.between_tokens));
  families.push_back(histogram(
      "ingle_request_seconds",
      "From when a generation was queued to its end",
      stats.request));
}

} // namespace

Metrics::Metrics()
    : responses_(prometheus::BuildCounter()
                     .Name("ingle_http_responses_total")
                     .Help("Requests that are over, by the answer's status")
                     .Register(registry_)) {}

void Metrics::count_response(int status) {
  responses_.Add({{"status", std::to_string(status)}}).Increment();
}

std::string Metrics::text(const EngineStats& engine) const {
  std::vector<MetricFamily> families = registry_.Collect();
  add_gauges(families, engine);
  add_prompt_cache(families, engine.prompt_cache);
  add_totals(families, engine);
  add_times(families, engine);
  return prometheus::TextSerializer().Serialize(families);
}

} // namespace ingle
