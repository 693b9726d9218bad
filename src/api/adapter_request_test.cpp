#include "api/adapter_request.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

// One adapter, `a`, and a store with `b`.
class FakeAdapters final : public Adapters {
 public:
  Result<MountedAdapter> mount(const std::string& id, const std::string& path)
      override {
    MountedAdapter made = one_;
    made.id = id;
    made.path = path;
    return made;
  }
  Result<MountedAdapter> unmount(const std::string& id) override {
    return id == one_.id
        ? Result<MountedAdapter>(one_)
        : Status::not_found("no adapter").with_reason("adapter_not_found");
  }
  std::vector<MountedAdapter> mounted() const override {
    return {one_};
  }
  std::vector<AvailableAdapter> available() const override {
    return {{"b", "/store/b", 8, 0.5f, ""}, {"c", "/store/c", 4, 2, "org/m"}};
  }
  Result<std::shared_ptr<const AdapterSet>> choose(
      const std::optional<std::string>&) const override {
    return std::shared_ptr<const AdapterSet>();
  }

 private:
  MountedAdapter one_{"a", "/store/a", 21, 1, 4, 2, 1000};
};

TEST(AdapterRequestTest, mount_reports_layers) {
  FakeAdapters adapters;
  EXPECT_EQ(
      *mount_adapter(R"({"id":"x","path":"b"})", adapters),
      R"({"id":"x","mounted_layers":21,"rank":4,"scale":2.0})");
}

TEST(AdapterRequestTest, BadBodiesNameTheField) {
  FakeAdapters adapters;
  const auto where = [&](const char* body) {
    const Status status = mount_adapter(body, adapters).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidRequest) << body;
    return status.where();
  };
  EXPECT_EQ(where(R"({"path":"b"})"), "id");
  EXPECT_EQ(where(R"({"id":"","path":"b"})"), "id");
  EXPECT_EQ(where(R"({"id":1,"path":"b"})"), "id");
  EXPECT_EQ(where(R"({"id":"x"})"), "path");
  EXPECT_EQ(where(R"({"id":"x","path":null})"), "path");
  EXPECT_EQ(where("[]"), "");
  EXPECT_EQ(where(""), "");
}

TEST(AdapterRequestTest, UnmountReportsLayersOr404) {
  FakeAdapters adapters;
  EXPECT_EQ(
      *unmount_adapter("a", adapters), R"({"id":"a","removed_layers":21})");
  EXPECT_EQ(
      unmount_adapter("b", adapters).status().reason(), "adapter_not_found");
}

TEST(AdapterRequestTest, ListsSayWhatIsThere) {
  const FakeAdapters adapters;
  EXPECT_EQ(
      mounted_adapters_body(adapters),
      R"({"object":"list","data":[{"id":"a","mounted_layers":21,"rank":4,)"
      R"("scale":2.0,"path":"/store/a","size_bytes":1000}]})");
  EXPECT_EQ(
      available_adapters_body(adapters),
      R"({"object":"list","data":[{"id":"b","path":"/store/b","scale":0.5,)"
      R"("rank":8,"baseModel":null},{"id":"c","path":"/store/c","scale":2.0,)"
      R"("rank":4,"baseModel":"org/m"}]})");
}

} // namespace
} // namespace ingle
