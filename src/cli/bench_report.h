// The figures of `ingle bench` as a table, as CSV and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/bench_session.h"

namespace ingle {

// What the figures were measured with.
struct BenchSetting {
  std::string commit;
  std::string machine; // the processor's name
  std::string isa; // of the kernels; "mlx": none
  int threads = 0;
  std::string numerics;
  std::string model;
  std::string model_hash;
};

// Of one or more values.
struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
};
Summary summarise(std::vector<double> values);

// Lines of a table whose first column is as wide as the longest name.
std::string table_head(size_t name_width);
std::string table_row(const Measurement& measurement, size_t name_width);

// A head and a line for each measurement, all with the setting.
std::string to_csv(
    const BenchSetting& setting,
    const std::vector<Measurement>& measurements,
    uint64_t peak_bytes);

nlohmann::ordered_json to_json(
    const BenchSetting& setting,
    const std::vector<Measurement>& measurements,
    uint64_t peak_bytes);

} // namespace ingle
