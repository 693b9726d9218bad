#include "cli/bench_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

namespace ingle {
namespace {

bool decodes(const Measurement& measurement) {
  return measurement.test.gen > 0;
}

std::string number(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string left(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

std::string right(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

constexpr size_t kColumn = 10; // characters

std::string row(
    const std::string& name,
    size_t name_width,
    const std::array<std::string, 5>& cells) {
  std::string line = left(name, name_width);
  for (const auto& cell : cells) {
    line += right(cell, kColumn);
  }
  return line;
}

// RFC 4180: names of processors and folders may hold anything.
std::string csv_field(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

} // namespace

Summary summarise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1
      ? values[middle]
      : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

std::string table_head(size_t name_width) {
  return row(
      "test", name_width, {"tokens/s", "min", "max", "overhead", "sampler"});
}

std::string table_row(const Measurement& measurement, size_t name_width) {
  const Summary rate = summarise(measurement.rates);
  const bool has_shares = decodes(measurement);
  return row(
      test_name(measurement.test),
      name_width,
      {number(rate.median, 1),
       number(rate.min, 1),
       number(rate.max, 1),
       has_shares ? number(measurement.overhead_percent, 1) + "%" : "",
       has_shares ? number(measurement.sampler_percent, 1) + "%" : ""});
}

std::string to_csv(
    const BenchSetting& setting,
    const std::vector<Measurement>& measurements,
    uint64_t peak_bytes) {
  std::string text =
      "commit,machine,isa,threads,numerics,model,model_hash,peak_rss_bytes,"
      "test,n_prompt,n_gen,depth,batch,tok_s,min,max,overhead_pct,"
      "sampler_pct\n";
  const std::string setting_fields = csv_field(setting.commit) + "," +
      csv_field(setting.machine) + "," + csv_field(setting.isa) + "," +
      std::to_string(setting.threads) + "," + csv_field(setting.numerics) +
      "," + csv_field(setting.model) + "," + csv_field(setting.model_hash) +
      "," + std::to_string(peak_bytes) + ",";
  for (const auto& measurement : measurements) {
    const BenchTest& test = measurement.test;
    const Summary rate = summarise(measurement.rates);
    text += setting_fields + csv_field(test_name(test));
    for (const int size : {test.prompt, test.gen, test.depth, test.batch}) {
      text += "," + std::to_string(size);
    }
    for (const double value : {rate.median, rate.min, rate.max}) {
      text += "," + number(value, 3);
    }
    text += decodes(measurement)
        ? "," + number(measurement.overhead_percent, 3) + "," +
            number(measurement.sampler_percent, 3) + "\n"
        : ",,\n";
  }
  return text;
}

nlohmann::ordered_json to_json(
    const BenchSetting& setting,
    const std::vector<Measurement>& measurements,
    uint64_t peak_bytes) {
  auto results = nlohmann::ordered_json::array();
  for (const auto& measurement : measurements) {
    const BenchTest& test = measurement.test;
    const Summary rate = summarise(measurement.rates);
    nlohmann::ordered_json result = {
        {"test", test_name(test)},
        {"tok_s", rate.median},
        {"min", rate.min},
        {"max", rate.max},
        {"runs", measurement.rates},
        {"n_prompt", test.prompt},
        {"n_gen", test.gen},
        {"depth", test.depth},
        {"batch", test.batch}};
    if (decodes(measurement)) {
      result["temperature"] = test.sampled ? kBenchTemperature : 0;
      result["top_p"] = test.sampled ? kBenchTopP : 1;
      result["overhead_pct"] = measurement.overhead_percent;
      result["sampler_pct"] = measurement.sampler_percent;
    }
    results.push_back(std::move(result));
  }
  return {
      {"commit", setting.commit},
      {"machine", setting.machine},
      {"isa", setting.isa},
      {"threads", setting.threads},
      {"numerics", setting.numerics},
      {"model", setting.model},
      {"model_hash", setting.model_hash},
      {"peak_rss_bytes", peak_bytes},
      {"results", std::move(results)}};
}

} // namespace ingle
