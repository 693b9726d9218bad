#include "cli/engine_flags.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace ingle {
namespace {

EngineFlags parse(const std::string& line) {
  CLI::App app;
  EngineFlags flags;
  add_engine_flags(app, flags);
  app.parse(line);
  return flags;
}

RunOptions run_options(const std::string& line, const std::string& isa = "") {
  const auto fs = make_memory_file_system();
  const SystemClock clock;
  return parse(line).run_options({*fs, clock, "/home", "python3", isa});
}

TEST(EngineFlagsTest, WithoutFlagsTheDeviceDecides) {
  const RunOptions options = run_options("");
  EXPECT_EQ(options.numerics, default_numerics());
  EXPECT_EQ(options.threads, 0);
}

TEST(EngineFlagsTest, InstructionSetIsTheEnvironments) {
  EXPECT_EQ(run_options("").isa, "");
  EXPECT_EQ(run_options("", "avx2").isa, "avx2");
}

TEST(EngineFlagsTest, EachModeHasItsName) {
  for (const Numerics numerics :
       {Numerics::kNear, Numerics::kFast, Numerics::kExact}) {
    const std::string name(to_string(numerics));
    EXPECT_EQ(run_options("--numerics " + name).numerics, numerics);
  }
}

TEST(EngineFlagsTest, ExactIsShortForItsMode) {
  EXPECT_EQ(run_options("--exact").numerics, Numerics::kExact);
  EXPECT_EQ(parse("--exact --numerics exact").numerics, Numerics::kExact);
}

TEST(EngineFlagsTest, ExactBesideAnotherModeIsRefused) {
  for (const char* const line :
       {"--exact --numerics fast",
        "--numerics near --exact",
        "--exact --numerics near"}) {
    EXPECT_THROW(parse(line), CLI::ValidationError) << line;
  }
}

TEST(EngineFlagsTest, OtherModesAreRefused) {
  for (const char* const name : {"native", "NEAR", "1", "''"}) {
    EXPECT_THROW(parse(std::string("--numerics ") + name), CLI::ParseError)
        << name;
  }
}

TEST(EngineFlagsTest, CacheIsAsTheModelSaysUnlessAFlagDoes) {
  EXPECT_EQ(run_options("").kv_quant, KvQuant::kConfig);
  EXPECT_EQ(run_options("--kv-quant config").kv_quant, KvQuant::kConfig);
  EXPECT_EQ(run_options("--kv-quant off").kv_quant, KvQuant::kOff);
  const RunOptions uniform = run_options("--kv-quant 4");
  EXPECT_EQ(uniform.kv_quant, KvQuant::kUniform);
  EXPECT_EQ(uniform.kv, (KvQuantization{4, 64}));
  EXPECT_EQ(
      run_options("--kv-group-size 32 --kv-quant 8").kv,
      (KvQuantization{8, 32}));
}

TEST(EngineFlagsTest, CacheOfOtherBitsOrGroupsIsRefused) {
  for (const char* const line :
       {"--kv-quant 2",
        "--kv-quant on",
        "--kv-quant 4 --kv-group-size 16",
        "--kv-group-size 32",
        "--kv-group-size 32 --kv-quant off"}) {
    EXPECT_THROW(parse(line), CLI::ParseError) << line;
  }
}

// CLI11 compares numbers as numbers, and names what isn't one without a cause.
TEST(EngineFlagsTest, GroupSizeThatIsNoNumberIsToldWhatWouldDo) {
  try {
    parse("--kv-quant 4 --kv-group-size 6.5");
    ADD_FAILURE();
  } catch (const CLI::ParseError& error) {
    EXPECT_NE(std::string(error.what()).find("64"), std::string::npos)
        << error.what();
  }
}

TEST(EngineFlagsTest, MemoryBudgetIsGigabytesOrThreeQuartersOfTheMachine) {
  const auto usable = [](const std::string& line) {
    CLI::App app;
    EngineFlags flags;
    add_memory_flag(app, flags);
    app.parse(line);
    return flags.usable_memory();
  };
  EXPECT_EQ(usable("--memory-budget 0.5"), 500'000'000u);
  EXPECT_GT(usable(""), 0u);
  for (const char* const value : {"nan", "inf", "0", "-1", "1e7", "x"}) {
    EXPECT_THROW(
        usable(std::string("--memory-budget ") + value), CLI::ParseError)
        << value;
  }
}

TEST(EngineFlagsTest, AdaptersAreIdsAndFolders) {
  const auto mounted = [](const std::string& line) {
    CLI::App app;
    EngineFlags flags;
    add_adapter_flag(app, flags);
    app.parse(line);
    return flags.mounted_adapters();
  };
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(
      mounted("--adapter b=x/y --adapter a=/z=1"),
      (Pairs{{"b", "x/y"}, {"a", "/z=1"}}));
  EXPECT_TRUE(mounted("").empty());
  for (const char* const value : {"a", "a=", "=x", "="}) {
    EXPECT_THROW(mounted(std::string("--adapter ") + value), CLI::ParseError)
        << value;
  }
}

TEST(EngineFlagsTest, ThreadsHaveARange) {
  EXPECT_EQ(run_options("--threads 1").threads, 1);
  EXPECT_EQ(run_options("--threads 1024").threads, 1024);
  for (const char* const value : {"0", "-1", "1025", "2.5", "x"}) {
    EXPECT_THROW(parse(std::string("--threads ") + value), CLI::ParseError)
        << value;
  }
}

} // namespace
} // namespace ingle
