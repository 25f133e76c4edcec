// SPDX-License-Identifier: Apache-2.0
//
// Every rank has the same checkpoint in its own memory, so that these tests count what each reads.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sealpoint/collective_reader.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/collective_load_job.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kRows = 60;
constexpr std::uint64_t kColumns = 700;
constexpr std::uint64_t kMatrixBytes = kRows * kColumns * 4;
constexpr std::uint64_t kVectorBytes = 50000;

Region Rows(std::uint64_t begin, std::uint64_t end) {
  return Region::Of({{begin, 0}, {end - begin, kColumns}});
}
Region Columns(std::uint64_t begin, std::uint64_t end) {
  return Region::Of({{0, begin}, {kRows, end - begin}});
}

// "matrix" in four blobs, "vector" in two and coded, "empty", "scalar".
MiniSpec StoredState() {
  MiniSpec spec;
  spec.tensors.push_back(
      CutTensor("matrix", DType::kF32, {kRows, kColumns}, NoiseBytes(1, kMatrixBytes),
                {Rows(0, 7), Rows(7, 30), Rows(30, 31), Rows(31, 60)}, {0, 1, 2, 3}));
  spec.tensors.push_back(CutTensor("vector", DType::kUInt8, {kVectorBytes},
                                   Bytes(kVectorBytes, std::byte{5}),
                                   {Slice(0, 20000), Slice(20000, kVectorBytes)}, {3, 1}));
  spec.tensors.back().codec = Codec::kZstd;
  spec.tensors.push_back({.name = "empty", .shape = {0, 3}});
  spec.tensors.push_back(
      CutTensor("scalar", DType::kF64, {}, NoiseBytes(2, 8), {Region::Whole({})}, {2}));
  return spec;
}

const MiniContainer& GoodContainer() {
  static const MiniContainer container = BuildMini(StoredState());
  return container;
}

// One rank with its copy of the state.
struct LoadJob : CollectiveLoadJob {
  explicit LoadJob(Communicator& communicator,
                   const std::function<void(MiniContainer&)>& damage = {})
      : CollectiveLoadJob(communicator, GoodContainer(), damage) {}
};

// A slice and the memory for it.
struct Wanted {
  std::string tensor;
  Region region;
  Bytes bytes;

  Wanted(std::string name, Region of, std::uint64_t element_size)
      : tensor(std::move(name)),
        region(std::move(of)),
        bytes(region.element_count() * element_size) {}
  void AddTo(ReadRequest& request) { request.Add(tensor, region, MutableMemoryView::Host(bytes)); }
  void Expect(const Bytes& content, const Shape& shape, std::uint32_t element_size) const {
    EXPECT_EQ(bytes, ExtractRegion(content, shape, element_size, region));
  }
};

Wanted MatrixSlice(Region region) { return {"matrix", std::move(region), 4}; }
void ExpectMatrix(const Wanted& slice) {
  slice.Expect(NoiseBytes(1, kMatrixBytes), {kRows, kColumns}, 4);
}

TEST(CollectiveLoadTest, OtherRanksInAnotherLayoutGetTheirParts) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Wanted columns = MatrixSlice(
        Columns(job.rank() * kColumns / job.size(), (job.rank() + 1) * kColumns / job.size()));
    Wanted run(
        "vector",
        Slice(job.rank() * kVectorBytes / job.size(), (job.rank() + 1) * kVectorBytes / job.size()),
        1);
    Bytes scalar(8);
    ReadRequest request;
    columns.AddTo(request);
    run.AddTo(request);
    request.Add("scalar", MutableMemoryView::Host(scalar));
    request.Add("empty", MutableMemoryView::Host(scalar));
    const auto report = reader->Load(request);
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    ExpectMatrix(columns);
    run.Expect(Bytes(kVectorBytes, std::byte{5}), {kVectorBytes}, 1);
    EXPECT_EQ(scalar, NoiseBytes(2, 8));
  });
}

TEST(CollectiveLoadTest, EachWantedChunkIsReadByOneRank) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Wanted slice = MatrixSlice(Columns(0, kColumns - job.rank()));  // nested slices
    ReadRequest request;
    slice.AddTo(request);
    const auto report = reader->Load(request, LoadContract::Partial());
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    ExpectMatrix(slice);
    EXPECT_EQ(job.PayloadRead(), report->bytes_read);
    EXPECT_EQ(job.Sum(job.PayloadRead()), kMatrixBytes);
    EXPECT_EQ(report->all_bytes_read, kMatrixBytes);
    EXPECT_EQ(report->all_bytes_requested, kMatrixBytes);
  });
}

TEST(CollectiveLoadTest, OnlyWantedPartsOfChunksAreSent) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Wanted slice = MatrixSlice(Columns(0, kColumns / 4));
    ReadRequest request;
    slice.AddTo(request);
    const auto report = reader->Load(request, LoadContract::Partial());
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    ExpectMatrix(slice);
    EXPECT_EQ(report->all_bytes_read, kMatrixBytes);
    EXPECT_LE(report->bytes_received, slice.bytes.size());
    EXPECT_EQ(report->bytes_received == 0, job.size() == 1);
  });
}

TEST(CollectiveLoadTest, ReadingIsDealtEvenly) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Wanted slice = MatrixSlice(Rows(0, kRows));
    ReadRequest request;
    slice.AddTo(request);  // all want it
    const auto report = reader->Load(request, LoadContract::Partial());
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    constexpr std::uint64_t kChunk = 4096;
    EXPECT_LE(report->bytes_read, kMatrixBytes / job.size() + 2 * kChunk);
    ExpectMatrix(slice);
    if (comm.size() > 1) {
      EXPECT_EQ(report->bytes_received, kMatrixBytes - report->bytes_read);
    }
  });
}

// So that the reader's own part does not travel, and ranks that want nothing do nothing.
TEST(CollectiveLoadTest, AChunkIsReadByARankThatWantsIt) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    // The first two want columns of all chunks.
    Wanted slice = MatrixSlice(Columns(job.rank() * kColumns / 2, (job.rank() + 1) * kColumns / 2));
    ReadRequest request;
    if (comm.rank() < 2) slice.AddTo(request);
    const auto report = reader->Load(request, LoadContract::Partial());
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    if (comm.rank() < 2) {
      ExpectMatrix(slice);
    } else {
      EXPECT_EQ(report->bytes_read, 0u);
    }
    // If there are two ranks, each reads half of its own request itself.
    const std::uint64_t all_received = job.Sum(report->bytes_received);
    EXPECT_LE(all_received, comm.size() == 1 ? 0 : kMatrixBytes / 2);
    const auto plan = reader->Plan(request, LoadContract::Partial()).value();
    EXPECT_EQ(plan.bytes_received, all_received);
    EXPECT_EQ(plan.ranks[job.rank()].bytes_received, report->bytes_received);
  });
}

// As on the mesh that saved.
TEST(CollectiveLoadTest, WhatOneRankWantsAloneTravelsNowhere) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    // Ranks have one each of the four stored parts of the matrix; other ranks have nothing.
    const std::vector<Region> stored = {Rows(0, 7), Rows(7, 30), Rows(30, 31), Rows(31, 60)};
    ReadRequest request;
    std::vector<Wanted> slices;
    std::uint64_t own_bytes = 0;
    for (std::size_t i = job.rank(); i < stored.size(); i += job.size()) {
      slices.push_back(MatrixSlice(stored[i]));
      own_bytes += slices.back().bytes.size();
    }
    for (Wanted& slice : slices) slice.AddTo(request);
    const auto report = reader->Load(request, LoadContract::Partial());
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    for (const Wanted& slice : slices) ExpectMatrix(slice);
    EXPECT_EQ(report->bytes_read, own_bytes);
    EXPECT_EQ(report->bytes_received, 0u);
    EXPECT_EQ(report->exchange_count, 0u);
    EXPECT_EQ(report->all_bytes_read, kMatrixBytes);
    EXPECT_EQ(report->all_bytes_requested, kMatrixBytes);
    const auto plan = reader->Plan(request, LoadContract::Partial()).value();
    EXPECT_EQ(plan.ranks[job.rank()].bytes_read, own_bytes);
    EXPECT_EQ(plan.bytes_read, kMatrixBytes);
  });
}

// As of a model whose weights are sharded and whose norms are not.
TEST(CollectiveLoadTest, OnlyWhatSeveralRanksWantTravels) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const std::vector<Region> stored = {Rows(7, 30), Rows(30, 31), Rows(31, 60)};
    ReadRequest request;
    std::vector<Wanted> slices = {MatrixSlice(Rows(0, 7))};  // all want it
    const std::uint64_t shared_bytes = slices.front().bytes.size();
    std::uint64_t own_bytes = 0;
    for (std::size_t i = job.rank(); i < stored.size(); i += job.size()) {
      slices.push_back(MatrixSlice(stored[i]));
      own_bytes += slices.back().bytes.size();
    }
    for (Wanted& slice : slices) slice.AddTo(request);
    const auto report = reader->Load(request, LoadContract::Partial());
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    for (const Wanted& slice : slices) ExpectMatrix(slice);
    EXPECT_EQ(report->all_bytes_read, kMatrixBytes);
    EXPECT_EQ(report->all_bytes_requested, kMatrixBytes);
    EXPECT_GE(report->bytes_read, own_bytes);
    EXPECT_EQ(report->bytes_received, own_bytes + shared_bytes - report->bytes_read);
    const auto plan = reader->Plan(request, LoadContract::Partial()).value();
    EXPECT_EQ(plan.ranks[job.rank()].bytes_read, report->bytes_read);
    EXPECT_EQ(plan.bytes_read, kMatrixBytes);
  });
}

TEST(CollectiveLoadTest, RanksMayReadWhatOthersReadToo) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Wanted all = MatrixSlice(Rows(0, kRows));
    ReadRequest request;
    all.AddTo(request);
    const CollectiveLoadOptions options{.share_chunks = false};
    const auto report = reader->Load(request, LoadContract::Partial(), options);
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    ExpectMatrix(all);
    EXPECT_EQ(report->bytes_read, kMatrixBytes);
    EXPECT_EQ(report->bytes_received, 0u);
    EXPECT_EQ(report->all_bytes_read, kMatrixBytes * job.size());
    EXPECT_EQ(report->all_bytes_requested, kMatrixBytes);
    // Each begins with another part, and later finds in the page cache what others read.
    std::set<Bytes> first_files;
    for (const Bytes& name : comm.AllGather(AsBytes(job.FirstFileRead())).value()) {
      first_files.insert(name);
    }
    EXPECT_GT(first_files.size(), comm.size() == 1 ? 0u : 1u);
    const auto plan = reader->Plan(request, LoadContract::Partial(), options).value();
    EXPECT_EQ(plan.bytes_read, kMatrixBytes * job.size());
    if (comm.size() == 1) return;
    const CollectiveLoadOptions other{.share_chunks = comm.rank() != 0};
    EXPECT_THAT(reader->Load(request, LoadContract::Partial(), other).status(),
                HasCode(Code::kInvalidArgument));
  });
}

TEST(CollectiveLoadTest, ASmallBudgetTakesMoreRoundsAndGivesTheSame) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Wanted slice = MatrixSlice(Rows(0, kRows));  // replicas
    ReadRequest request;
    slice.AddTo(request);
    const auto report = reader->Load(request, LoadContract::Partial(),
                                     {.memory_budget_bytes = 3 * 8192, .threads = 2});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    ExpectMatrix(slice);
    if (comm.size() > 1) {
      EXPECT_GE(report->exchange_count, kMatrixBytes / 8192);
    }
    EXPECT_EQ(report->all_bytes_read, kMatrixBytes);
  });
}

TEST(CollectiveLoadTest, IndexIsReadOnce) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = CollectiveReader::Open(comm, "c", {.storage = job.storage});
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(job.storage->log().reads.empty(), comm.rank() != 0);
    EXPECT_EQ(job.storage->log().stats.empty(), comm.rank() != 0);
    EXPECT_EQ((*reader)->checkpoint().tensor_count(), 4u);
  });
}

TEST(CollectiveLoadTest, ARankThatRefusesTheIndexFailsTheOpenOfAll) {
  OnRanks([](Communicator& comm) {
    if (comm.size() == 1) return;
    LoadJob job(comm);
    OpenOptions options{.storage = job.storage};
    if (comm.rank() == comm.size() - 1) options.limits.tensor_count_max = 1;
    const auto reader = CollectiveReader::Open(comm, "c", options);
    ASSERT_FALSE(reader.ok());
    EXPECT_EQ(reader.error().code(), Code::kLimitExceeded);
  });
}

TEST(CollectiveLoadTest, NobodyMayWantAnything) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const auto report = reader->Load({}, LoadContract::Partial());
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(report->all_bytes_read, 0u);
    EXPECT_EQ(report->exchange_count, 0u);
  });
}

TEST(CollectiveLoadTest, ATensorIsUnexpectedOnlyIfNoRankWantsIt) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Wanted slice = MatrixSlice(Rows(0, 1));
    Bytes scalar(8);
    ReadRequest request;
    slice.AddTo(request);
    if (comm.rank() == 0) request.Add("scalar", MutableMemoryView::Host(scalar));
    if (comm.rank() == comm.size() - 1) {
      request.Add("empty", MutableMemoryView::Host(scalar));
    }
    const auto report = reader->Load(request, {.unexpected = OnMismatch::kReport});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    ASSERT_THAT(report->findings, SizeIs(1));
    EXPECT_EQ(report->findings[0].tensor, "vector");
    const Status error = reader->Load(request).error();
    EXPECT_THAT(error, HasCode(Code::kMismatch));
    EXPECT_EQ(error.place().tensor, "vector");
  });
}

TEST(CollectiveLoadTest, RanksCoverATensorTogether) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const auto load = [&](std::uint64_t rows) {
      Wanted slice =
          MatrixSlice(Rows(job.rank() * rows / job.size(), (job.rank() + 1) * rows / job.size()));
      ReadRequest request;
      slice.AddTo(request);
      return reader
          ->Load(request, {.unexpected = OnMismatch::kAllow, .coverage = OnMismatch::kError})
          .status();
    };
    EXPECT_TRUE(load(kRows).ok());
    const Status error = load(kRows - 1);
    EXPECT_THAT(error, HasCode(Code::kMismatch));
    EXPECT_THAT(error.message(), HasSubstr("700 elements"));
  });
}

TEST(CollectiveLoadTest, ASliceThatOneRankCannotHaveFailsOnAll) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Bytes bytes(8);
    ReadRequest request;
    const int last = comm.size() - 1;
    if (comm.rank() == last) request.Add("missing", MutableMemoryView::Host(bytes));
    const Status error = reader->Load(request, LoadContract::Partial()).error();
    EXPECT_THAT(error, HasCode(Code::kMismatch));
    EXPECT_EQ(error.place().tensor, "missing");
    EXPECT_EQ(error.place().rank, last);
    EXPECT_TRUE(reader->Load({}, LoadContract::Partial()).ok());  // still in step
  });
}

TEST(CollectiveLoadTest, DamageThatOneRankReadsFailsOnAllAndNamesTheFile) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm, [](MiniContainer& container) {
      container.blob(2)[container.blobs.at(2).records[0].offset] ^= std::byte{1};
    });
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Wanted slice = MatrixSlice(Rows(0, kRows));
    ReadRequest request;
    slice.AddTo(request);
    const Status error = reader->Load(request, LoadContract::Partial()).error();
    EXPECT_THAT(error, FailsRule(Code::kCorrupt, "R-CHK-02"));
    EXPECT_EQ(error.place().path, "c/" + job.container.blobs.at(2).name);
    EXPECT_EQ(error.place().tensor, "matrix");
    EXPECT_TRUE(error.place().rank.has_value());
    Wanted intact = MatrixSlice(Rows(0, 7));
    ReadRequest others;
    intact.AddTo(others);
    EXPECT_TRUE(reader->Load(others, LoadContract::Partial()).ok());
    ExpectMatrix(intact);
  });
}

// The others have read what they wanted, and must not call it a success.
TEST(CollectiveLoadTest, DamageInWhatOneRankReadsForItselfFailsOnAll) {
  OnRanks([](Communicator& comm) {
    const int last = comm.size() - 1;
    LoadJob job(comm, [](MiniContainer& container) {
      container.blob(2)[container.blobs.at(2).records[0].offset] ^= std::byte{1};
    });
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    Wanted damaged = MatrixSlice(Rows(30, 31));
    Wanted intact = MatrixSlice(Rows(0, 7));
    ReadRequest request;
    if (comm.rank() == last) damaged.AddTo(request);
    if (comm.rank() == 0) intact.AddTo(request);
    const Status error = reader->Load(request, LoadContract::Partial()).error();
    EXPECT_THAT(error, FailsRule(Code::kCorrupt, "R-CHK-02"));
    EXPECT_EQ(error.place().rank, last);
    EXPECT_TRUE(reader->Load({}, LoadContract::Partial()).ok());  // still in step
  });
}

TEST(CollectiveLoadTest, WhatCannotBeOpenedFailsOnAll) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm, [](MiniContainer& container) { container.index()[200] ^= std::byte{1}; });
    const auto reader = CollectiveReader::Open(comm, "c", {.storage = job.storage});
    EXPECT_THAT(reader.error(), FailsRule(Code::kCorrupt, "R-MRK-06"));
    EXPECT_EQ(reader.error().place().rank, 0);
  });
}

// Two intact checkpoints: each rank alone would open its own.
TEST(CollectiveLoadTest, RefusesRanksWithAnotherPath) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    StoreFiles(*job.memory, "other", job.container.files);
    const bool is_odd = comm.rank() > 0 && comm.rank() == comm.size() - 1;
    const auto reader =
        CollectiveReader::Open(comm, is_odd ? "other" : "c", {.storage = job.storage});
    if (comm.size() == 1) return;
    EXPECT_THAT(reader.status(), HasCode(Code::kInvalidArgument));
    EXPECT_EQ(reader.status().message(),
              "the ranks disagree on opening (path c): path is c on rank 0, other on rank " +
                  std::to_string(comm.size() - 1));
    EXPECT_EQ(reader.status().place().rank, comm.size() - 1);
  });
}

TEST(CollectiveLoadTest, ARankThatHasFailedFailsTheCallsOfAll) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const bool is_last = comm.rank() == comm.size() - 1;
    const Status own = is_last ? Status(Code::kComm, "lost my input") : Status();
    const OpenOptions options = {.storage = job.storage};
    const auto failed = CollectiveReader::Open(comm, is_last ? "" : "c", options, own);
    EXPECT_THAT(failed.status(), HasCode(Code::kCancelled));
    EXPECT_EQ(failed.status().place().rank, comm.size() - 1);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const auto loaded =
        reader->Load({}, is_last ? LoadContract() : LoadContract::Partial(), {.failure = own});
    EXPECT_THAT(loaded.status(), HasCode(Code::kCancelled));
    EXPECT_EQ(loaded.status().message(), "lost my input");
    EXPECT_TRUE(reader->Load({}, LoadContract::Partial()).ok());  // the ranks are still in step
  });
}

TEST(CollectiveLoadTest, RefusesThreadsBelowZero) {
  OnRanks([](Communicator& comm) {
    LoadJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    EXPECT_THAT(reader->Load({}, LoadContract::Partial(), {.threads = -1}).error(),
                HasCode(Code::kInvalidArgument));
  });
}

}  // namespace
}  // namespace sealpoint::testing
