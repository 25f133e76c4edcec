// SPDX-License-Identifier: Apache-2.0
//
// Directories of a series are swapped for links to a checkpoint elsewhere, before each operation of
// what removes: nothing elsewhere is ever touched.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "tests/support/process/results.h"
#include "tests/support/process/temp_dir.h"
#include "tests/unit/series/series_fixture.h"

namespace sealpoint::testing {
namespace {

namespace fs = std::filesystem;

// Checkpoints "old" and "new", a dead attempt and a void directory in "series"; beside it a
// checkpoint and an attempt of another owner.
class SwapTest : public ::testing::Test {
 protected:
  struct Scene {
    Scene() {
      Put("series/old", 1, 0, 1);
      Put("series/mid", 2, 1, 2);
      Put("series/new", 3, 2, 3);
      Put("series/dead", 4, 0, 1);
      fs::remove(dir / "series/dead/COMMIT");
      Put("elsewhere", 9, 0, 1);
      before = Elsewhere();
    }
    void Put(const std::string& path, std::uint8_t attempt, std::uint8_t parent,
             std::uint64_t sequence) const {
      StoreFiles(*PosixStorage(), dir / path,
                 BuildMini({.attempt = MiniSpec::MakeId(attempt),
                            .parent = MiniSpec::MakeId(parent),
                            .sequence = sequence})
                     .files);
    }
    std::map<std::string, Bytes> Elsewhere() const {
      std::map<std::string, Bytes> files;
      for (const std::string& name : FileNames(*PosixStorage(), dir / "elsewhere")) {
        files[name] = ReadWholeFile(*PosixStorage(), dir / "elsewhere", name);
      }
      return files;
    }
    // The directory goes aside, and a link takes its name.
    void Swap(const std::string& name) const {
      const std::string place = dir / ("series/" + name);
      std::error_code error;  // it may be gone already
      fs::rename(place, dir / "aside", error);
      if (!error) fs::create_directory_symlink(dir / "elsewhere", place);
    }

    const TempDir dir;
    const std::shared_ptr<FailingStorage> storage =
        std::make_shared<FailingStorage>(PosixStorage());
    std::map<std::string, Bytes> before;
  };

  // Once for each operation of the call, which is then preceded by the swap.
  static std::uint64_t Try(const std::string& name,
                           const std::function<void(const Series&)>& call) {
    std::uint64_t swaps = 0;
    for (bool has_swapped = true; has_swapped; swaps += has_swapped ? 1 : 0) {
      const Scene scene;
      has_swapped = false;
      std::uint64_t operations = 0;
      scene.storage->SetHook([&](StorageOp, std::string_view) {
        if (operations++ != swaps) return;
        scene.Swap(name);
        has_swapped = true;
      });
      call(Series(scene.dir / "series", scene.storage));
      EXPECT_EQ(scene.Elsewhere(), scene.before) << "swapped before operation " << swaps;
    }
    EXPECT_GT(swaps, 10u);
    return swaps;
  }
};

TEST_F(SwapTest, NothingElsewhereIsRemoved) {
  std::uint64_t swaps =
      Try("old", [](const Series& series) { static_cast<void>(series.Delete("old")); });
  swaps += Try("old", [](const Series& series) { static_cast<void>(series.Prune({})); });
  swaps += Try("dead", [](const Series& series) {
    static_cast<void>(series.RemoveUncommitted("dead"));
    static_cast<void>(series.RemoveUncommitted("dead"));
  });
  RecordRun({.row = "series-swaps",
             .title = "Directories replaced by links during deletion, pruning and clean-up",
             .command = "ctest --test-dir build/dev -R unit.series",
             .counts = {{"swaps", swaps}},
             .exact = false});
}

// The marker is compared before it goes: another checkpoint in the same place stays.
TEST_F(SwapTest, AnotherCheckpointOfTheSameNameStays) {
  const Scene scene;
  bool is_swapped = false;
  scene.storage->SetHook([&](StorageOp op, std::string_view) {
    if (is_swapped || op != StorageOp::kSyncDirectory) return;  // that of the newer one
    is_swapped = true;
    fs::rename(scene.dir / "series/old", scene.dir / "aside");
    fs::rename(scene.dir / "elsewhere", scene.dir / "series/old");
    fs::create_directory_symlink(scene.dir / "series/old", scene.dir / "elsewhere");
  });
  EXPECT_THAT(Series(scene.dir / "series", scene.storage).Delete("old"),
              FailsRule(Code::kInvalidArgument, "R-SER-21"));
  EXPECT_EQ(scene.Elsewhere(), scene.before);
}

// It was listed, then another one has its name.
TEST_F(SwapTest, TheNewestIsDescribedByItsOwnFiles) {
  bool has_swapped = true;
  for (std::uint64_t swaps = 0; has_swapped; ++swaps) {
    const Scene scene;
    ReplaceFile(*PosixStorage(), scene.dir / "elsewhere", "KEEP", &scene.before.begin()->second);
    has_swapped = false;
    std::uint64_t operations = 0;
    scene.storage->SetHook([&](StorageOp, std::string_view) {
      if (operations++ != swaps) return;
      has_swapped = true;
      fs::rename(scene.dir / "series/new", scene.dir / "aside");
      fs::rename(scene.dir / "elsewhere", scene.dir / "series/new");
    });
    const auto newest = Series(scene.dir / "series", scene.storage).Newest();
    if (!newest.ok()) continue;
    EXPECT_EQ(newest->entry.is_kept, newest->entry.attempt == MiniSpec::MakeId(9)) << swaps;
  }
}

TEST_F(SwapTest, WhatBecameVoidMeanwhileIsAnError) {
  const Scene scene;
  const Bytes marker = VoidMarker(1);
  scene.storage->SetHook([&](StorageOp op, std::string_view) {
    if (op != StorageOp::kSyncDirectory) return;
    ReplaceFile(*PosixStorage(), scene.dir / "series/old", "COMMIT", &marker);
  });
  EXPECT_THAT(Series(scene.dir / "series", scene.storage).Delete("old"),
              FailsRule(Code::kInvalidArgument, "R-SER-21"));
}

TEST_F(SwapTest, AKeepFileThatCameMeanwhilePins) {
  const Scene scene;
  scene.storage->SetHook([&](StorageOp op, std::string_view) {
    if (op != StorageOp::kSyncDirectory || fs::exists(scene.dir / "series/old/KEEP")) return;
    ReplaceFile(*PosixStorage(), scene.dir / "series/old", "KEEP", &scene.before.begin()->second);
  });
  EXPECT_THAT(Series(scene.dir / "series", scene.storage).Delete("old"),
              FailsRule(Code::kInvalidArgument, "R-SER-05"));
  EXPECT_TRUE(fs::exists(scene.dir / "series/old/COMMIT"));
}

// R-SER-11: a second name of the newest checkpoint is no newer one, whichever comes first.
TEST_F(SwapTest, ALinkToItIsNoNewerCheckpoint) {
  for (const char* const link : {"a-link", "zz-link"}) {
    const Scene scene;
    fs::create_directory_symlink(scene.dir / "series/new",
                                 scene.dir / ("series/" + std::string(link)));
    const Series series(scene.dir / "series", scene.storage);
    EXPECT_FALSE(series.Delete("new").ok()) << link;
    EXPECT_TRUE(fs::exists(scene.dir / "series/new/COMMIT")) << link;
    EXPECT_TRUE(series.Delete("mid").ok()) << link;
  }
}

// A link whose target cannot be opened may lead to the newest checkpoint.
TEST_F(SwapTest, ALinkThatCannotBeFollowedIsNotForeign) {
  const Scene scene;
  fs::create_directory_symlink(scene.dir / "elsewhere", scene.dir / "series/link");
  for (const StorageOp op : {StorageOp::kOpenForRead, StorageOp::kOpenDirectory}) {
    scene.storage->Heal();
    scene.storage->Fail({.op = StorageOp::kOpenForRead, .path = "link", .nth = 0});
    if (op == StorageOp::kOpenDirectory) {
      scene.storage->Fail({.op = op, .path = "link", .nth = 0});
    }
    EXPECT_THAT(Series(scene.dir / "series", scene.storage).Newest().status(), HasCode(Code::kIo));
  }
}

}  // namespace
}  // namespace sealpoint::testing
