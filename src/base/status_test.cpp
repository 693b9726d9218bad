#include "base/status.h"

#include <memory>

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(Status, DefaultIsOk) {
  EXPECT_TRUE(Status().is_ok());
  EXPECT_EQ(Status().code(), StatusCode::kOk);
}

TEST(Status, ContextStandsBeforeTheMessage) {
  const Status status = Status::io("disk on fire").with_context("a.bin");
  EXPECT_EQ(status.message(), "a.bin: disk on fire");
  EXPECT_EQ(status.code(), StatusCode::kIo);
}

TEST(Status, ReasonAndPlaceSurviveContext) {
  const Status status = Status::invalid_request("too long")
                            .with_reason("context_length_exceeded")
                            .with_where("messages[2].content")
                            .with_context("chat");
  EXPECT_EQ(status.reason(), "context_length_exceeded");
  EXPECT_EQ(status.where(), "messages[2].content");
}

Result<int> half(int n) {
  if (n % 2 != 0) {
    return Status::invalid_request("odd");
  }
  return n / 2;
}

Result<int> quarter(int n) {
  INGLE_ASSIGN_OR_RETURN(const int once, half(n));
  INGLE_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

TEST(Result, AssignOrReturnGivesTheValueOrTheFirstFailure) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).status().message(), "odd");
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
  const std::unique_ptr<int> owned = std::move(result).value();
  EXPECT_EQ(*owned, 3);
}

} // namespace
} // namespace ingle
