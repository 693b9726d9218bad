#include "hub/hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/testing/fake_hub.h"

namespace ingle {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class HubTest : public testing::Test {
 protected:
  static HubModel tiny() {
    return {std::string(kTinyRepo)};
  }
  // All answers have this status.
  void answer_with(int status, std::string error_code = {}) {
    fake_.misbehave = [=](const HttpRequest&, FakeAnswer& answer) {
      answer.head = HttpHead{};
      answer.head.status = status;
      if (!error_code.empty()) {
        answer.head.fields["x-error-code"] = error_code;
      }
    };
  }

  FakeHub fake_;
};

TEST_F(HubTest, ListsACommitAndItsFiles) {
  const auto listing = Hub(fake_, fake_.settings()).list(tiny());
  ASSERT_TRUE(listing.is_ok()) << listing.status().message();
  EXPECT_EQ(listing->commit, kTinyCommit);
  EXPECT_THAT(listing->files, testing::Contains("config.json"));
}

TEST_F(HubTest, RevisionIsOneWordOfTheAddress) {
  static_cast<void>(
      Hub(fake_, fake_.settings()).list({"org/tiny", "refs/pr/1"}));
  EXPECT_THAT(fake_.requests.at(0).url, HasSubstr("/revision/refs%2Fpr%2F1"));
}

TEST_F(HubTest, FileIsDescribedByHashAndSize) {
  Hub hub(fake_, fake_.settings());
  for (const std::string path : {"config.json", "model.safetensors"}) {
    const auto file = hub.describe(tiny(), fake_.commit, path);
    ASSERT_TRUE(file.is_ok()) << file.status().message();
    const std::string& content = fake_.files.at(path);
    EXPECT_EQ(*file, (HubFile{path, etag_of(path, content), content.size()}));
  }
}

TEST_F(HubTest, DescriptionIsNotAskedOfAnotherHost) {
  Hub hub(fake_, fake_.settings());
  EXPECT_TRUE(hub.describe(tiny(), fake_.commit, "model.safetensors").is_ok());
  for (const HttpRequest& request : fake_.requests) {
    EXPECT_TRUE(request.url.starts_with(FakeHub::kEndpoint)) << request.url;
  }
}

TEST_F(HubTest, RenamedModelIsFollowed) {
  const std::string real = std::string(FakeHub::kEndpoint) + "/new/name";
  fake_.misbehave = [&](const HttpRequest& request, FakeAnswer& answer) {
    if (request.url.starts_with(real)) {
      answer.head.status = 200;
      answer.head.fields = {
          {"etag", "W/\"" + std::string(40, 'a') + "\""},
          {"content-length", "5"}};
    } else {
      answer.head = HttpHead{307, {}, real, {}};
    }
  };
  const auto file = Hub(fake_, fake_.settings())
                        .describe(tiny(), fake_.commit, "config.json");
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_EQ(file->etag, std::string(40, 'a'));
  EXPECT_EQ(file->size, 5u);
}

TEST_F(HubTest, FileWithoutHashOrSizeIsRefused) {
  for (const char* field : {"etag", "content-length"}) {
    for (const char* value : {"", "\"abc\"", "-1"}) {
      fake_.misbehave = [=](const HttpRequest&, FakeAnswer& answer) {
        answer.head.fields[field] = value;
      };
      const auto file = Hub(fake_, fake_.settings())
                            .describe(tiny(), fake_.commit, "config.json");
      EXPECT_EQ(file.status().code(), StatusCode::kUnsupported) << field;
    }
  }
}

TEST_F(HubTest, auth_not_sent_to_cdn) {
  Hub hub(fake_, fake_.settings("secret"));
  const auto file = hub.describe(tiny(), fake_.commit, "model.safetensors");
  ASSERT_TRUE(file.is_ok());
  const Status status = hub.fetch(
      tiny(),
      fake_.commit,
      *file,
      [] { return 0; },
      [](uint64_t, ByteView) { return Status::ok(); });
  ASSERT_TRUE(status.is_ok()) << status.message();
  size_t others = 0;
  for (const HttpRequest& request : fake_.requests) {
    const bool is_home = request.url.starts_with(FakeHub::kEndpoint);
    EXPECT_EQ(request.token, is_home ? "secret" : "") << request.url;
    others += is_home ? 0 : 1;
  }
  EXPECT_EQ(others, 1u);
}

TEST_F(HubTest, TokenIsNotSentToAnotherPortOrALikeHost) {
  for (const char* other :
       {"https://hub.example:444/x",
        "https://hub.example.evil.example/x",
        "https://hub.example@evil.example/x"}) {
    fake_.requests.clear();
    fake_.misbehave = [=](const HttpRequest& request, FakeAnswer& answer) {
      answer.head = HttpHead{200, {}, {}, {}};
      if (request.url != other) {
        answer.head = HttpHead{302, {}, other, {}};
      }
    };
    static_cast<void>(Hub(fake_, fake_.settings("secret")).list(tiny()));
    ASSERT_EQ(fake_.requests.size(), 2u);
    EXPECT_EQ(fake_.requests[1].url, other);
    EXPECT_EQ(fake_.requests[1].token, "");
  }
}

TEST_F(HubTest, RedirectToWhatIsNotHttpsIsRefused) {
  for (const char* other : {"http://cdn.example/x", "file:///etc/passwd"}) {
    fake_.requests.clear();
    fake_.misbehave = [=](const HttpRequest&, FakeAnswer& answer) {
      answer.head = HttpHead{302, {}, other, {}};
    };
    const auto listing = Hub(fake_, fake_.settings()).list(tiny());
    EXPECT_EQ(listing.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(fake_.requests.size(), 1u);
  }
}

TEST_F(HubTest, EndpointThatIsNoAddressIsNamed) {
  HubSettings settings = fake_.settings("secret");
  settings.endpoint = "localhost:8080";
  const Status status = Hub(fake_, settings).list(tiny()).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("HF_ENDPOINT"));
  EXPECT_TRUE(fake_.requests.empty());
}

TEST_F(HubTest, EndlessRedirectsEnd) {
  fake_.misbehave = [](const HttpRequest& request, FakeAnswer& answer) {
    answer.head = HttpHead{302, {}, request.url, {}};
  };
  const auto listing = Hub(fake_, fake_.settings()).list(tiny());
  EXPECT_EQ(listing.status().code(), StatusCode::kIo);
  EXPECT_LE(fake_.requests.size(), 10u);
}

TEST_F(HubTest, StatusSaysWhatToDo) {
  const auto message_of = [&](int status, const char* code, const char* token) {
    answer_with(status, code);
    return Hub(fake_, fake_.settings(token))
        .list({"org/tiny", "v2"})
        .status()
        .message();
  };
  EXPECT_THAT(message_of(401, "", ""), HasSubstr("set HF_TOKEN"));
  EXPECT_THAT(message_of(403, "", "t"), HasSubstr("not open to this token"));
  EXPECT_THAT(
      message_of(403, "GatedRepo", "t"),
      HasSubstr("accept its terms at https://hub.example/org/tiny"));
  EXPECT_THAT(
      message_of(404, "RepoNotFound", ""), HasSubstr("has no model org/tiny"));
  EXPECT_THAT(
      message_of(404, "RevisionNotFound", ""), HasSubstr("no revision 'v2'"));
  EXPECT_THAT(message_of(404, "", ""), HasSubstr("or that has no revision"));
  EXPECT_THAT(message_of(418, "", ""), HasSubstr("status 418"));
  EXPECT_EQ(fake_.waits.size(), 0u); // none of these pass
}

TEST_F(HubTest, TooManyRequestsAreRetriedWhenTheServerSays) {
  int left = 2;
  fake_.misbehave = [&](const HttpRequest&, FakeAnswer& answer) {
    if (left-- > 0) {
      answer.head = HttpHead{429, {}, {}, seconds(17)};
    }
  };
  EXPECT_TRUE(Hub(fake_, fake_.settings()).list(tiny()).is_ok());
  EXPECT_THAT(fake_.waits, ElementsAre(seconds(17), seconds(17)));
}

TEST_F(HubTest, RetriesAreBounded) {
  answer_with(429);
  const auto listing = Hub(fake_, fake_.settings()).list(tiny());
  EXPECT_EQ(listing.status().code(), StatusCode::kOverloaded);
  EXPECT_THAT(fake_.waits, ElementsAre(seconds(1), seconds(2), seconds(4)));
  EXPECT_EQ(fake_.requests.size(), 4u);
}

TEST_F(HubTest, WaitThatIsTooLongIsToldInstead) {
  fake_.misbehave = [&](const HttpRequest&, FakeAnswer& answer) {
    answer.head = HttpHead{429, {}, {}, seconds(4000)};
  };
  const auto listing = Hub(fake_, fake_.settings()).list(tiny());
  EXPECT_THAT(listing.status().message(), HasSubstr("4000 s"));
  EXPECT_TRUE(fake_.waits.empty());
}

TEST_F(HubTest, InterruptedWaitIsCancelled) {
  answer_with(503);
  HubSettings settings = fake_.settings();
  settings.wait = [](seconds, const std::string&) { return false; };
  EXPECT_EQ(
      Hub(fake_, settings).list(tiny()).status().code(),
      StatusCode::kCancelled);
}

TEST_F(HubTest, AnswerThatIsNoListIsRefused) {
  for (const char* body :
       {"",
        "<html>",
        "[]",
        "{}",
        R"({"sha": "../../x", "siblings": []})",
        R"({"sha": 1, "siblings": []})",
        R"({"sha": "0123456789abcdef0123456789abcdef01234567"})",
        R"({"sha": "0123456789abcdef0123456789abcdef01234567",
            "siblings": [1]})",
        R"({"sha": "0123456789abcdef0123456789abcdef01234567",
            "siblings": [{"rfilename": 1}]})"}) {
    fake_.misbehave = [=](const HttpRequest&, FakeAnswer& answer) {
      answer.body = body;
    };
    const Status status = Hub(fake_, fake_.settings()).list(tiny()).status();
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << body;
  }
}

} // namespace
} // namespace ingle
