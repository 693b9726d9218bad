// What GET /metrics tells, in Prometheus' text format: what the engine counts,
// and how requests were answered.
//
// Threads: any.
#pragma once

#include <string>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>

#include "engine/engine_stats.h"

namespace ingle {

class Metrics {
 public:
  Metrics();

  // A request is over; `status` is what it got, 499 where the client left.
  void count_response(int status);

  std::string text(const EngineStats& engine) const;

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& responses_; // of registry_
};

// Of text().
inline constexpr std::string_view kMetricsContentType =
    "text/plain; version=0.0.4; charset=utf-8";

} // namespace ingle
