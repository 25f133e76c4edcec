// SPDX-License-Identifier: Apache-2.0
//
// Options and declarations are refused when they are given, with what was found and expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>

#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/commit.h"
#include "sealpoint/limits.h"
#include "sealpoint/safetensors.h"
#include "sealpoint/saver.h"
#include "sealpoint/series.h"
#include "sealpoint/verify.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename T>
std::string Refusal(const Result<T>& result) {
  const Status status = result.status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
  return status.message();
}

TEST(OptionsTest, OfAnEngine) {
  EXPECT_EQ(Refusal(Engine::Create({.memory_budget_bytes = 4096})),
            "memory_budget_bytes is 4096, expected at least two staging buffers of 4194304");
  EXPECT_EQ(Refusal(Engine::Create({.memory_budget_bytes = 0, .staging_buffer_size_bytes = 0})),
            "staging_buffer_size_bytes is 0, expected a positive multiple of 4096");
  EXPECT_EQ(Refusal(Engine::Create({.staging_buffer_size_bytes = 5000})),
            "staging_buffer_size_bytes is 5000, expected a positive multiple of 4096");
  EXPECT_EQ(Refusal(Engine::Create({.staging_buffer_size_bytes = ~std::uint64_t{4095}})),
            "memory_budget_bytes is 268435456, expected at least two staging buffers of "
            "18446744073709547520");
  EXPECT_EQ(Refusal(Engine::Create({.io_thread_count = -1})),
            "io_thread_count is -1, expected 1 to 1024 or kThreadsAuto");
  EXPECT_TRUE(Engine::Create({.memory_budget_bytes = 8 * kMiB}).ok());
}

TEST(OptionsTest, OfASaver) {
  const auto engine = SmallEngine(MemoryStorage());
  const auto comm = SelfCommunicator();
  const auto refusal = [&](SaverOptions options) {
    return Refusal(Saver::Create(*engine, *comm, std::move(options)));
  };
  EXPECT_EQ(refusal({.blob_size_max_bytes = 4096}),
            "blob_size_max_bytes is 4096, expected at least 1048576");
  EXPECT_EQ(refusal({.writer_ranks = {0, 1}}), "writer_ranks has rank 1, expected 0 to 0");
  EXPECT_EQ(refusal({.writer_ranks = {-1}}), "writer_ranks has rank -1, expected 0 to 0");
  EXPECT_EQ(refusal({.writer_ranks = {0, 0}}),
            "writer_ranks has rank 0 after rank 0, expected ascending ranks");
  EXPECT_EQ(refusal({.deadline = std::chrono::milliseconds(-1)}),
            "deadline is -1 ms, expected more than 0, or kForever");
  EXPECT_EQ(refusal({.background_deadline = std::chrono::milliseconds(-5)}),
            "background_deadline is -5 ms, expected more than 0, or kForever");
  EXPECT_EQ(refusal({.promote_deadline = std::chrono::milliseconds(0)}),
            "promote_deadline is 0 ms, expected more than 0, or kForever");
  EXPECT_TRUE(
      Saver::Create(
          *engine, *comm,
          {.blob_size_max_bytes = kMiB, .deadline = kForever, .background_deadline = kForever})
          .ok());
}

// More would take all memory before the first of them reads a byte.
TEST(OptionsTest, AnyNumberOfThreads) {
  const auto storage = MemoryStorage();
  const auto engine = SmallEngine(storage);
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  Declaration declaration;
  const Bytes bytes(100);
  ASSERT_TRUE(declaration.Add({.tensor = ByteTensor("w", 100)}).ok());
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind("w", MemoryView::Host(bytes)).ok());
  ASSERT_TRUE(saver->Save(SaveTarget::Directory("c"), {}, sources).ok());
  const auto checkpoint = Checkpoint::Open("c", {.storage = storage}).value();
  const auto together = CollectiveReader::Open(*comm, "c", {.storage = storage}).value();
  Bytes out(100);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(out));
  const ReadPlan plan = checkpoint->Plan(request).value();
  for (const int count : {-1, kThreadsMax + 1, std::numeric_limits<int>::max()}) {
    const auto refused = HasSubstr(" is " + std::to_string(count) + ", expected 1 to 1024");
    EXPECT_THAT(Refusal(Engine::Create({.io_thread_count = count})), refused);
    EXPECT_THAT(Refusal(Engine::Create({.snapshot_thread_count = count})), refused);
    EXPECT_THAT(Refusal(Verify("c", {.threads = count, .storage = storage})), refused);
    EXPECT_THAT(Refusal(checkpoint->Read(plan, {.threads = count})), refused);
    EXPECT_THAT(Refusal(together->Load(request, {}, {.threads = count})), refused);
    EXPECT_THAT(Refusal(together->Plan(request, {}, {.threads = count})), refused);
  }
  EXPECT_TRUE(Verify("c", {.threads = kThreadsMax, .storage = storage}).ok());
  EXPECT_TRUE(Verify("c", {.threads = kThreadsAuto, .storage = storage}).ok());
  EXPECT_TRUE(checkpoint->Read(plan, {.threads = kThreadsMax}).ok());
  EXPECT_TRUE(together->Load(request, {}, {.threads = kThreadsMax}).ok());
}

// What has the form of a URI is never taken for a folder of that name in the working directory.
TEST(OptionsTest, APathThatIsAUri) {
  const std::string uri = "s3://bucket/run";
  const auto is_refused = [&](const Status& status) {
    EXPECT_EQ(status.code(), Code::kUnsupported) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("s3://"));
  };
  const auto engine = SmallEngine(PosixStorage());
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  const Declaration declaration;
  const Sources sources(declaration);
  const SaveOptions options{.step = 1, .allow_empty = true};
  for (const SaveTarget& target : {SaveTarget::Directory(uri), SaveTarget::InSeries(uri)}) {
    is_refused(saver->Save(target, options, sources).status());
    is_refused(saver->SaveAsync(target, options, sources).value()->Wait().status());
  }
  is_refused(BlobWriter::Create(*engine, uri).status());
  is_refused(Commit(*PosixStorage(), uri, {.allow_empty = true}, {}).status());
  is_refused(ListBlobs(*PosixStorage(), uri).status());
  is_refused(PosixStorage()->CreateDirectories(uri));
  is_refused(Checkpoint::Open(uri).status());
  is_refused(CollectiveReader::Open(*comm, uri).status());
  is_refused(OpenNewest(*comm, uri).status());
  is_refused(Series(uri).List().status());
  is_refused(Series(uri).Newest().status());
  is_refused(Series(uri).Prune({.keep_last = 2}).status);
  is_refused(Series(uri).Delete("step-1"));
  is_refused(Verify(uri).value().violations.at(0));
  is_refused(SafetensorsModel::Open(uri).status());
  is_refused(SafetensorsModel::Open("s3://model.safetensors").status());
  EXPECT_FALSE(std::filesystem::exists("s3:"));
}

TEST(OptionsTest, OfATensor) {
  Declaration declaration;
  const auto refusal = [&](TensorSpec tensor) {
    tensor.name = "w";
    const auto added = declaration.Add({.tensor = std::move(tensor)});
    EXPECT_EQ(added.status().place().tensor, "w");
    return Refusal(added);
  };
  EXPECT_EQ(refusal({.shape = {4}}), "dtype is missing");
  EXPECT_THAT(refusal({.dtype = DType::kF32, .shape = {4}, .codec_level = 99}),
              StartsWith("codec_level is 99, expected -"));
  EXPECT_THAT(refusal({.dtype = DType::kF32, .shape = {4}, .chunk_size_bytes = 1}),
              HasSubstr("chunk size is 1 bytes"));
  ASSERT_TRUE(declaration.AddObject({.name = "rng"}).ok());
  EXPECT_EQ(declaration.objects()[0].media_type, "application/octet-stream");
}

TEST(OptionsTest, OfAReader) {
  EXPECT_EQ(Refusal(Checkpoint::Open("c", {.memory_budget_bytes = 4096})),
            "memory_budget_bytes is 4096, expected at least 65536");
}

TEST(DeclarationMisuse, ATensorDeclaredTwiceHereNamesBothSlots) {
  Declaration declaration;
  const TensorSpec w = ByteTensor("w", 10);
  declaration.Add({.tensor = w, .region = Slice(0, 5)}).value();
  const auto refusal = [&](DeclaredTensor held) {
    const auto added = declaration.Add(std::move(held));
    EXPECT_EQ(added.status().place().tensor, "w");
    return Refusal(added);
  };
  EXPECT_EQ(refusal({.tensor = w, .region = Slice(0, 5)}),
            "declared twice: slot 1 with region [0:5] and slot 0 with region [0:5] overlap");
  EXPECT_EQ(refusal({.tensor = w, .region = Slice(4, 10)}),
            "declared twice: slot 1 with region [4:10] and slot 0 with region [0:5] overlap");
  EXPECT_EQ(refusal({.tensor = ByteTensor("w", 11), .region = Slice(5, 11)}),
            "slot 1 has u8 [11], expected u8 [10] as slot 0 has");
  EXPECT_EQ(declaration.Add({.tensor = w, .region = Slice(5, 10)}).value(), 1u);
  const TensorSpec empty = ByteTensor("empty", 0);
  declaration.Add({.tensor = empty}).value();
  EXPECT_EQ(Refusal(declaration.Add({.tensor = empty})), "declared twice: slot 3 and slot 2");
}

// Nothing of a layout is added if a part of it is refused.
TEST(DeclarationMisuse, ALayoutWhosePartsOverlapAddsNothing) {
  Declaration declaration;
  const TensorSpec w = ByteTensor("w", 10);
  const LocalLayout layout{.parts = {{.region = Slice(0, 5)}, {.region = Slice(4, 8)}}};
  EXPECT_THAT(Refusal(declaration.Add(w, layout)),
              HasSubstr("slot 1 with region [4:8] and slot 0"));
  EXPECT_TRUE(declaration.tensors().empty());
}

TEST(DeclarationMisuse, NothingDeclaredIsNothingSaved) {
  const auto storage = MemoryStorage();
  const auto engine = SmallEngine(storage);
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  const Declaration declaration;
  const Sources sources(declaration);
  const auto target = SaveTarget::Directory("c");
  EXPECT_THAT(Refusal(saver->Save(target, {}, sources)), HasSubstr("SaveOptions::allow_empty"));
  EXPECT_THAT(Refusal(saver->SaveAsync(target, {}, sources)), HasSubstr("no rank declares"));
  EXPECT_TRUE(saver->Save(target, {.allow_empty = true}, sources).ok());
  EXPECT_EQ(OpenFrom(storage, "c")->tensor_count(), 0u);
  EXPECT_THAT(Refusal(Commit(*storage, "c", {}, {})), HasSubstr("CommitOptions::allow_empty"));
}

TEST(DeclarationMisuse, WhatWasMovedFromIsEmpty) {
  Declaration from;
  from.Add({.tensor = ByteTensor("w", 10)}).value();
  const Declaration to = std::move(from);
  EXPECT_EQ(from, Declaration());  // NOLINT(bugprone-use-after-move): what it is then
  EXPECT_TRUE(from.SlotsOf("w").empty());
  EXPECT_EQ(to.SlotsOf("w").size(), 1u);
}

}  // namespace
}  // namespace sealpoint::testing
