#include "cli/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingle {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

BenchSetting setting() {
  return {"c0ffee", "a \"quick\" one", "avx2 avx512", 2, "exact", "m", "ab"};
}

std::vector<Measurement> measurements() {
  return {
      {{.prompt = 512}, {90, 110, 100}, 0, 0},
      {{.gen = 64, .depth = 32, .batch = 8, .sampled = true},
       {10, 20},
       1.25,
       0.5}};
}

TEST(BenchReportTest, MedianOfAnEvenNumberIsBetweenTheMiddleTwo) {
  const Summary odd = summarise({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 3);
  EXPECT_EQ(summarise({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(summarise({7}).median, 7);
}

TEST(BenchReportTest, TablesColumnsStandBelowEachOther) {
  const std::string head = table_head(20);
  for (const auto& measurement : measurements()) {
    const std::string row = table_row(measurement, 20);
    EXPECT_EQ(row.size(), head.size());
    EXPECT_THAT(row, StartsWith(test_name(measurement.test) + " "));
  }
  EXPECT_THAT(
      table_row(measurements()[0], 20), HasSubstr("     100.0      90"));
  EXPECT_THAT(table_row(measurements()[1], 20), HasSubstr("1.2%      0.5%"));
}

TEST(BenchReportTest, CsvHasAsManyFieldsAsItsHead) {
  const std::string csv = to_csv(setting(), measurements(), 1000);
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < csv.size();) {
    const size_t end = csv.find('\n', begin);
    lines.push_back(csv.substr(begin, end - begin));
    begin = end + 1;
  }
  ASSERT_EQ(lines.size(), 3u);
  for (const auto& line : lines) { // no field of ours has a comma
    EXPECT_EQ(
        std::count(line.begin(), line.end(), ','),
        std::count(lines[0].begin(), lines[0].end(), ','));
  }
  EXPECT_THAT(lines[1], HasSubstr("\"a \"\"quick\"\" one\""));
  EXPECT_THAT(lines[1], HasSubstr("\"pp512\",512,0,0,1,100.000,90.000,"));
  EXPECT_THAT(lines[2], HasSubstr("\"tg64@d32 b8+sample\",0,64,32,8,15.000"));
}

TEST(BenchReportTest, JsonHasTheSettingAndEveryTest) {
  const auto json = to_json(setting(), measurements(), 1000);
  EXPECT_EQ(json["commit"], "c0ffee");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["peak_rss_bytes"], 1000);
  ASSERT_EQ(json["results"].size(), 2u);
  const auto& prefill = json["results"][0];
  EXPECT_EQ(prefill["test"], "pp512");
  EXPECT_EQ(prefill["tok_s"], 100);
  EXPECT_EQ(prefill["runs"].size(), 3u);
  EXPECT_FALSE(prefill.contains("overhead_pct"));
  const auto& decode = json["results"][1];
  EXPECT_EQ(decode["batch"], 8);
  EXPECT_EQ(decode["overhead_pct"], 1.25);
  EXPECT_EQ(decode["sampler_pct"], 0.5);
}

} // namespace
} // namespace ingle
