// SPDX-License-Identifier: Apache-2.0
//
// What a collective load costs each rank, told beforehand; and objects, which one rank reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sealpoint/bytes.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/collective_load_job.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kTensorBytes = 100 * kKiB;
constexpr std::uint64_t kChunk = 4096;

Bytes ObjectBytes(int number) {
  return NoiseBytes(static_cast<std::uint64_t>(100 + number),
                    9000 + 100 * static_cast<std::uint64_t>(number));
}

// "w" in three blobs, and objects "object 0" to "object 5" and an empty one.
const MiniContainer& ObjectsContainer() {
  static const MiniContainer container = [] {
    MiniSpec spec;
    spec.tensors.push_back(
        CutTensor("w", DType::kUInt8, {kTensorBytes}, NoiseBytes(1, kTensorBytes),
                  {Slice(0, 30000), Slice(30000, 70000), Slice(70000, kTensorBytes)}, {0, 1, 2}));
    for (int i = 0; i < 6; ++i) {
      spec.objects.push_back(
          {.name = "object " + std::to_string(i), .bytes = ObjectBytes(i), .blob = i % 3});
    }
    spec.objects.push_back({.name = "object none"});
    return BuildMini(spec);
  }();
  return container;
}

// Whether all ranks bring the same.
bool IsSameOnAll(Communicator& comm, const std::string& text) {
  const std::vector<Bytes> all = comm.AllGather(AsBytes(text)).value();
  return std::equal(all.begin() + 1, all.end(), all.begin());
}

struct PlanJob : CollectiveLoadJob {
  explicit PlanJob(Communicator& communicator)
      : CollectiveLoadJob(communicator, ObjectsContainer()) {}
  // A part of "w", which overlaps with that of the next rank.
  ReadRequest Request() {
    const std::uint64_t begin = rank() * (kTensorBytes / 2) / size();
    memory_bytes.resize(kTensorBytes / 2);
    ReadRequest request;
    request.Add("w", Slice(begin, begin + kTensorBytes / 2), MutableMemoryView::Host(memory_bytes));
    return request;
  }
  Bytes memory_bytes;
};

TEST(CollectivePlanTest, IsAllThatMayBeAskedForWithoutMemory) {
  OnRanks([](Communicator& comm) {
    PlanJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    ReadRequest request;
    if (comm.rank() == 0) {
      request.Add("w", MutableMemoryView::PlanOnly());
    } else {
      request = job.Request();
    }
    EXPECT_TRUE(reader->Plan(request, LoadContract::Partial()).ok());
    const Status loaded = reader->Load(request, LoadContract::Partial()).status();
    EXPECT_EQ(loaded.code(), Code::kInvalidArgument);
    EXPECT_THAT(loaded.message(), HasSubstr("the destination has no memory"));
  });
}

TEST(CollectivePlanTest, SaysWhatEachRankWantsAndReads) {
  OnRanks([](Communicator& comm) {
    PlanJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const ReadRequest request = job.Request();
    // So small that there are several exchanges.
    const CollectiveLoadOptions options{.memory_budget_bytes = 6 * kChunk};
    const auto plan = reader->Plan(request, LoadContract::Partial(), options);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    EXPECT_EQ(job.PayloadRead(), 0u);
    EXPECT_TRUE(IsSameOnAll(comm, plan->ToString()));
    ASSERT_EQ(plan->ranks.size(), job.size());
    const RankLoad& mine = plan->ranks[job.rank()];
    EXPECT_EQ(mine.host, comm.host());
    EXPECT_EQ(mine.alone.bytes_requested, kTensorBytes / 2);

    const auto report = reader->Load(request, LoadContract::Partial(), options);
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    // Its tables are known now.
    PlanSummary alone = report->plan;
    alone.table_bytes_read = mine.alone.table_bytes_read;
    EXPECT_EQ(mine.alone, alone);
    EXPECT_EQ(mine.bytes_read, report->bytes_read);
    EXPECT_EQ(mine.bytes_read, job.PayloadRead());
    EXPECT_EQ(mine.bytes_received, report->bytes_received);
    EXPECT_EQ(plan->bytes_read, report->all_bytes_read);
    std::uint64_t payload_requests = 0;
    std::set<std::string> files;
    for (const ReadCall& call : job.storage->log().reads) {
      for (const auto& [number, blob] : job.container.blobs) {
        if (call.name != blob.name || call.offset >= blob.chunks_end) continue;
        ++payload_requests;
        files.insert(call.name);
      }
    }
    EXPECT_EQ(mine.requests, payload_requests);
    EXPECT_EQ(mine.files, files.size());
  });
}

TEST(CollectivePlanTest, AddsTheRanksUp) {
  OnRanks([](Communicator& comm) {
    PlanJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const auto plan = reader->Plan(job.Request(), LoadContract::Partial());
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    std::uint64_t wanted = 0;
    std::uint64_t alone = 0;
    std::uint64_t read = 0;
    std::uint64_t received = 0;
    for (const RankLoad& load : plan->ranks) {
      wanted += load.alone.bytes_requested;
      alone += load.alone.bytes_read;
      read += load.bytes_read;
      received += load.bytes_received;
    }
    EXPECT_EQ(plan->bytes_requested, wanted);
    EXPECT_EQ(plan->bytes_read_alone, alone);
    EXPECT_EQ(plan->bytes_read, read);
    EXPECT_EQ(plan->bytes_received, received);
    EXPECT_DOUBLE_EQ(plan->amplification, static_cast<double>(read) / static_cast<double>(wanted));
    const std::string text = plan->ToString();
    EXPECT_THAT(text, HasSubstr((comm.size() == 1 ? "1 rank: " : " ranks: ") + BytesText(wanted) +
                                " requested; alone " + BytesText(alone) + " (x "));
    EXPECT_THAT(text, HasSubstr("; " + BytesText(received) + " sent\n"));
    EXPECT_THAT(text, HasSubstr("\n  rank " + std::to_string(comm.size() - 1) + " on "));
  });
}

TEST(CollectivePlanTest, TellsWhatTheContractSays) {
  OnRanks([](Communicator& comm) {
    PlanJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const auto plan = reader->Plan({}, {.unexpected = OnMismatch::kReport});
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    EXPECT_EQ(plan->findings.size(), 1u);
    EXPECT_EQ(plan->amplification, 0.0);
    EXPECT_THAT(reader->Plan({}).status(), HasCode(Code::kMismatch));
    EXPECT_TRUE(reader->Load({}, LoadContract::Partial()).ok());  // still in step
  });
}

TEST(CollectivePlanTest, RanksWithDifferentContractsAreTold) {
  OnRanks([](Communicator& comm) {
    if (comm.size() == 1) return;
    PlanJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    for (OnMismatch LoadContract::* const policy :
         {&LoadContract::missing, &LoadContract::unexpected, &LoadContract::dtype,
          &LoadContract::shape, &LoadContract::coverage}) {
      LoadContract contract = LoadContract::Partial();
      if (comm.rank() == 0) contract.*policy = OnMismatch::kReport;
      const Status status = reader->Load({}, contract).status();
      EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
      EXPECT_THAT(status.message(), HasSubstr(" is report on rank 0, "));
      EXPECT_TRUE(IsSameOnAll(comm, status.ToString()));
    }
    EXPECT_TRUE(reader->Load({}, LoadContract::Partial()).ok());  // still in step
  });
}

TEST(CollectiveObjectTest, OneRankReadsAndAllGetIt) {
  OnRanks([](Communicator& comm) {
    PlanJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    for (int i = 0; i < 6; ++i) {
      job.storage->ClearLog();
      const auto object = reader->ReadObject("object " + std::to_string(i));
      ASSERT_TRUE(object.ok()) << object.error().ToString();
      EXPECT_EQ(*object, ObjectBytes(i));
      EXPECT_EQ(job.Sum(job.PayloadRead()), ObjectBytes(i).size());
      EXPECT_EQ(job.PayloadRead() > 0, comm.rank() == i % comm.size());
    }
    EXPECT_THAT(reader->ReadObject("object none").value(), IsEmpty());
  });
}

TEST(CollectiveObjectTest, WhatIsNotThereFailsOnAll) {
  OnRanks([](Communicator& comm) {
    PlanJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const Status error = reader->ReadObject("object 7").status();
    EXPECT_THAT(error, HasCode(Code::kNotFound));
    EXPECT_EQ(error.place().object, "object 7");
    EXPECT_TRUE(IsSameOnAll(comm, error.ToString()));
  });
}

TEST(CollectiveObjectTest, DamageThatOneRankReadsFailsOnAll) {
  OnRanks([](Communicator& comm) {
    MiniContainer damaged = ObjectsContainer();
    const MiniBlob& blob = damaged.blobs.at(1);
    // Objects come behind the tensor in a blob: the last record is one of "object 4".
    damaged.blob(1)[blob.records.back().offset] ^= std::byte{1};
    CollectiveLoadJob job(comm, damaged);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const Status error = reader->ReadObject("object 4").status();
    EXPECT_THAT(error, FailsRule(Code::kCorrupt, "R-CHK-02"));
    EXPECT_EQ(error.place().path, "c/" + blob.name);
    EXPECT_EQ(error.place().object, "object 4");
    EXPECT_EQ(error.place().rank, 4 % comm.size());
    EXPECT_TRUE(IsSameOnAll(comm, error.ToString()));
    EXPECT_TRUE(reader->ReadObject("object 3").ok());
  });
}

TEST(CollectiveObjectTest, RanksThatAskForDifferentObjectsAreTold) {
  OnRanks([](Communicator& comm) {
    if (comm.size() == 1) return;
    PlanJob job(comm);
    const auto reader = job.Open();
    ASSERT_NE(reader, nullptr);
    const auto object = reader->ReadObject(comm.rank() == 0 ? "object 0" : "object 1");
    EXPECT_THAT(object.status(), HasCode(Code::kInvalidArgument));
    EXPECT_TRUE(reader->ReadObject("object 0").ok());  // still in step
  });
}

}  // namespace
}  // namespace sealpoint::testing
