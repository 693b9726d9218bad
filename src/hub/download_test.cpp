#include "hub/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_system_faulty.h"
#include "base/testing/small_disk.h"
#include "hub/hub_cache.h"
#include "hub/testing/fake_hub.h"

namespace ingle {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kCache = "/cache";
constexpr const char* kRepo = "/cache/models--org--tiny";

class DownloadTest : public testing::Test {
 protected:
  Result<DownloadReport> get(
      FileSystem& fs,
      const std::string& revision = "main") {
    Hub hub(fake_, fake_.settings());
    const DownloadPlace place{fs, clock_, processes_, kCache};
    INGLE_ASSIGN_OR_RETURN(
        const auto plan,
        plan_download(hub, {std::string(kTinyRepo), revision}));
    return download(place, hub, plan);
  }
  Result<DownloadReport> get() {
    return get(*fs_);
  }
  std::string snapshot(const std::string& commit) const {
    return join_path(join_path(kRepo, "snapshots"), commit);
  }
  void expect_whole(const std::string& commit) {
    for (const auto& [path, content] : fake_.files) {
      if (path != "README.md") {
        const std::string full = join_path(snapshot(commit), path);
        EXPECT_EQ(fs_->read(full).is_ok() ? *fs_->read(full) : "", content)
            << path;
      }
    }
    EXPECT_EQ(*fs_->read(join_path(kRepo, "refs/main")), commit);
  }
  bool has_ref() {
    return fs_->exists(join_path(kRepo, "refs/main"));
  }

  FakeHub fake_;
  FakeClock clock_;
  Processes processes_ = fake_processes();
  std::unique_ptr<FileSystem> fs_ = make_memory_file_system(&clock_);
};

TEST_F(DownloadTest, SnapshotIsLaidOutAsTheHubsLibrariesDo) {
  const auto report = get();
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_EQ(report->folder, snapshot(fake_.commit));
  expect_whole(fake_.commit);
  EXPECT_THAT(
      *fs_->list(report->folder),
      ElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  const auto names = *fs_->list(report->folder);
  for (const auto& name : names) {
    EXPECT_EQ(
        *fs_->read_link(join_path(report->folder, name)),
        "../../blobs/" + etag_of(name, fake_.files.at(name)));
  }
  EXPECT_THAT(*fs_->list(kRepo), ElementsAre("blobs", "refs", "snapshots"));
}

TEST_F(DownloadTest, SecondDownloadFetchesNothing) {
  ASSERT_TRUE(get().is_ok());
  fake_.requests.clear();
  const auto report = get();
  ASSERT_TRUE(report.is_ok());
  EXPECT_EQ(report->fetched_bytes, 0u);
  EXPECT_EQ(fake_.downloads(), 0u);
}

TEST_F(DownloadTest, NewCommitFetchesWhatChanged) {
  ASSERT_TRUE(get().is_ok());
  const std::string old = fake_.commit;
  fake_.commit = std::string(40, 'b');
  fake_.files["tokenizer.json"] = R"({"changed": true})";
  const auto report = get();
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_EQ(report->fetched_bytes, fake_.files.at("tokenizer.json").size());
  expect_whole(fake_.commit);
  EXPECT_TRUE(fs_->exists(join_path(snapshot(old), "config.json")));
}

TEST_F(DownloadTest, ShardsOfTheIndexAreFetchedAndNoOthers) {
  fake_.files.erase("model.safetensors");
  fake_.files["consolidated.safetensors"] = "the same again";
  fake_.files["w-1.safetensors"] = tiny_safetensors();
  fake_.files["model.safetensors.index.json"] =
      R"({"weight_map": {"weight": "w-1.safetensors"}})";
  const auto report = get();
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_EQ(
      *fs_->read(join_path(report->folder, "w-1.safetensors")),
      tiny_safetensors());
  EXPECT_FALSE(
      fs_->exists(join_path(report->folder, "consolidated.safetensors")));
}

TEST_F(DownloadTest, HostileNamesAreRefusedBeforeAnythingIsWritten) {
  fake_.files.erase("model.safetensors");
  for (const char* name :
       {"../evil.safetensors", "/evil.safetensors", "w/1.safetensors"}) {
    fake_.files[name] = tiny_safetensors();
    fake_.files["model.safetensors.index.json"] =
        std::string(R"({"weight_map": {"weight": ")") + name + "\"}}";
    const auto report = get();
    EXPECT_EQ(report.status().code(), StatusCode::kCorruption);
    EXPECT_THAT(report.status().message(), HasSubstr(name));
    EXPECT_FALSE(fs_->exists(kCache));
  }
}

TEST_F(DownloadTest, ShardThatTheModelLacksIsRefused) {
  fake_.files.erase("model.safetensors");
  fake_.files["model.safetensors.index.json"] =
      R"({"weight_map": {"weight": "1.safetensors"}})";
  EXPECT_THAT(
      get().status().message(), HasSubstr("which the model does not have"));
}

TEST_F(DownloadTest, RepoThatIsNoModelSaysWhatItHas) {
  fake_.files.erase("model.safetensors");
  EXPECT_THAT(get().status().message(), HasSubstr("no safetensors"));
  fake_.files["pytorch_model.bin"] = "x";
  EXPECT_THAT(get().status().message(), HasSubstr("only .bin files"));
  fake_.files["a.gguf"] = "x";
  EXPECT_THAT(get().status().message(), HasSubstr("ingle import"));
  fake_.files.erase("config.json");
  EXPECT_THAT(get().status().message(), HasSubstr("no config.json"));
  EXPECT_FALSE(fs_->exists(kCache));
}

TEST_F(DownloadTest, CutConnectionIsGoneOnWithByRange) {
  int cuts = 2;
  fake_.misbehave = [&](const HttpRequest& request, FakeAnswer& answer) {
    if (request.url.starts_with(FakeHub::kOther) && cuts-- > 0) {
      answer.cut_after = 130;
    }
  };
  const auto report = get();
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  expect_whole(fake_.commit);
  std::vector<uint64_t> starts;
  for (const HttpRequest& request : fake_.requests) {
    if (request.url.starts_with(FakeHub::kOther)) {
      starts.push_back(request.first_byte);
    }
  }
  EXPECT_THAT(starts, ElementsAre(0, 130, 260));
}

TEST_F(DownloadTest, DownloadThatWasCutForGoodGoesOnNextTime) {
  fake_.misbehave = [](const HttpRequest& request, FakeAnswer& answer) {
    if (request.url.starts_with(FakeHub::kOther)) {
      answer.cut_after = request.first_byte == 0 ? 130 : 0;
    }
  };
  const Status status = get().status();
  EXPECT_EQ(status.code(), StatusCode::kIo);
  const size_t small = fake_.files.at("config.json").size() +
      fake_.files.at("tokenizer.json").size();
  EXPECT_THAT(
      status.message(),
      AllOf(
          HasSubstr(std::to_string(small + 130) + " of "),
          HasSubstr("the same command goes on from there")));
  EXPECT_FALSE(has_ref());
  fake_.misbehave = nullptr;
  fake_.requests.clear();
  ASSERT_TRUE(get().is_ok());
  expect_whole(fake_.commit);
  EXPECT_EQ(fake_.downloads(), 2u); // the redirect, and the rest
  EXPECT_EQ(fake_.requests.back().first_byte, 130u);
}

TEST_F(DownloadTest, RangeThatIsIgnoredStartsTheFileAgain) {
  fake_.misbehave = [](const HttpRequest& request, FakeAnswer& answer) {
    if (!request.url.starts_with(FakeHub::kOther)) {
      return;
    }
    if (request.first_byte == 0) {
      answer.cut_after = 130;
    } else {
      answer.head.status = 200;
      answer.body = tiny_safetensors();
    }
  };
  const auto report = get();
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  expect_whole(fake_.commit);
}

TEST_F(DownloadTest, RangeThatIsNotTheOneAskedForCostsNothingOfWhatCame) {
  fake_.misbehave = [](const HttpRequest& request, FakeAnswer& answer) {
    if (!request.url.starts_with(FakeHub::kOther)) {
      return;
    }
    if (request.first_byte == 0) {
      answer.cut_after = 130;
    } else {
      answer.head.fields["content-range"] = "bytes 140-200/201";
    }
  };
  EXPECT_EQ(get().status().code(), StatusCode::kIo);
  EXPECT_FALSE(has_ref());
  fake_.misbehave = nullptr;
  const auto report = get();
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_LT(report->fetched_bytes, tiny_safetensors().size());
  expect_whole(fake_.commit);
}

TEST_F(DownloadTest, WrongHashIsRemovedAndTheNextDownloadWorks) {
  fake_.misbehave = [](const HttpRequest& request, FakeAnswer& answer) {
    if (request.url.starts_with(FakeHub::kOther)) {
      answer.body.back() ^= 1;
    }
  };
  EXPECT_EQ(get().status().code(), StatusCode::kCorruption);
  EXPECT_FALSE(has_ref());
  const auto names = *fs_->list(join_path(kRepo, "blobs"));
  for (const auto& name : names) {
    EXPECT_FALSE(name.ends_with(kPartSuffix)) << name;
  }
  fake_.misbehave = nullptr;
  ASSERT_TRUE(get().is_ok());
  expect_whole(fake_.commit);
}

TEST_F(DownloadTest, DiskThatIsTooSmallIsToldBeforeFetching) {
  SmallDisk disk(*fs_, 100);
  disk.reports_space = true;
  const Status status = get(disk).status();
  EXPECT_EQ(status.code(), StatusCode::kNoSpace);
  EXPECT_THAT(status.message(), HasSubstr("free"));
  EXPECT_EQ(fake_.downloads(), 0u);
}

TEST_F(DownloadTest, DiskThatFillsUpIsGoneOnWithWhenThereIsRoom) {
  for (uint64_t room = 0;; room += 50) {
    fs_ = make_memory_file_system(&clock_);
    SmallDisk disk(*fs_, room);
    const Status status = get(disk).status();
    if (status.is_ok()) {
      EXPECT_GT(room, 300u);
      return;
    }
    EXPECT_EQ(status.code(), StatusCode::kNoSpace);
    EXPECT_FALSE(has_ref());
    ASSERT_TRUE(get().is_ok()) << room;
    expect_whole(fake_.commit);
  }
}

TEST_F(DownloadTest, AnyCallThatFailsLeavesNoRefToWhatIsNotWhole) {
  for (uint64_t n = 1;; ++n) {
    fs_ = make_memory_file_system(&clock_);
    FaultyFileSystem faulty(*fs_, n, StatusCode::kIo);
    const auto report = get(faulty);
    if (report.is_ok() && faulty.calls() < n) {
      EXPECT_GT(n, 50u);
      return;
    }
    if (has_ref()) {
      expect_whole(fake_.commit);
    }
    ASSERT_TRUE(get().is_ok()) << n;
    expect_whole(fake_.commit);
  }
}

TEST_F(DownloadTest, ModelThatIsBeingFetchedIsNotFetchedTwice) {
  Processes other = processes_;
  other.self = {8, "here"};
  const auto lock =
      RepoLock::take(*fs_, clock_, other, kCache, std::string(kTinyRepo));
  ASSERT_TRUE(lock.is_ok());
  EXPECT_EQ(get().status().code(), StatusCode::kOverloaded);
  EXPECT_EQ(fake_.downloads(), 0u);
}

TEST_F(DownloadTest, ProgressEndsAtTheSumOfAllFiles) {
  Hub hub(fake_, fake_.settings());
  const DownloadPlace place{*fs_, clock_, processes_, kCache};
  const auto plan = plan_download(hub, {std::string(kTinyRepo)});
  ASSERT_TRUE(plan.is_ok());
  uint64_t last = 0;
  const auto report =
      download(place, hub, *plan, [&](uint64_t done, uint64_t total) {
        EXPECT_GE(done, last);
        EXPECT_EQ(total, plan->bytes());
        last = done;
      });
  ASSERT_TRUE(report.is_ok());
  EXPECT_EQ(last, plan->bytes());
  EXPECT_EQ(report->fetched_bytes, plan->bytes());
}

} // namespace
} // namespace ingle
