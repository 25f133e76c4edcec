// SPDX-License-Identifier: Apache-2.0
//
// Saves with a base, and what readers make of them (spec/delta.md).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "readers/load/checkpoint_impl.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/repack.h"
#include "sealpoint/series.h"
#include "sealpoint/verify.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kWeightRows = 24;
constexpr std::uint64_t kWeightColumns = 30000;
constexpr std::uint64_t kFixedSize = 60000;

// Rows of "w" on each rank, and "fixed" on all of them, which never changes.
struct Weights {
  explicit Weights(const Communicator& comm, std::uint64_t rows = kWeightRows) {
    const auto size = static_cast<std::uint64_t>(comm.size());
    const auto rank = static_cast<std::uint64_t>(comm.rank());
    declaration
        .Add({.tensor = {.name = "w",
                         .dtype = DType::kBf16,
                         .shape = {size * rows, kWeightColumns},
                         .chunk_size_bytes = 64 * kKiB},
              .region = Region::Of({{rank * rows, 0}, {rows, kWeightColumns}})})
        .value();
    declaration.Add({.tensor = ByteTensor("fixed", kFixedSize), .replicas = AllRanks(comm)})
        .value();
    w = NoiseBytes(rank + 1, rows * kWeightColumns * 2);
  }
  // Changes one element of 100.
  void Step(unsigned seed) {
    for (std::size_t at = seed % 90; at < w.size() / 2; at += 73 + (at + seed) % 54) {
      w[2 * at] ^= std::byte{0x03};
    }
  }
  Sources Bound() const {
    Sources sources(declaration);
    EXPECT_TRUE(sources.Bind("w", MemoryView::Host(w)).ok());
    EXPECT_TRUE(sources.Bind("fixed", MemoryView::Host(fixed)).ok());
    return sources;
  }

  Declaration declaration{};
  Bytes w{};
  Bytes fixed = NoiseBytes(99, kFixedSize);
};

// A series in which each rank saves versions.
struct DeltaJob : SaveJob {
  explicit DeltaJob(Communicator& communicator, SaverOptions options = {})
      : SaveJob(communicator, std::move(options)), state(communicator) {}

  Result<CommitInfo> Publish(std::uint64_t step) {
    const Sources sources = state.Bound();
    return SaveInMode(*saver, SaveTarget::InSeries(path("series")), {.step = step}, sources);
  }
  // Against a base whose "w" is `before`.
  Result<CommitInfo> PublishDelta(std::uint64_t step, const std::string& base,
                                  const Bytes& before) {
    const Sources sources = state.Bound();
    Sources base_sources(state.declaration);
    EXPECT_TRUE(base_sources.Bind("w", MemoryView::Host(before)).ok());
    EXPECT_TRUE(base_sources.Bind("fixed", MemoryView::Host(state.fixed)).ok());
    return SaveInMode(*saver, SaveTarget::InSeries(path("series")),
                      {.step = step, .base = SaveBase{base, &base_sources}}, sources);
  }
  // A full version and `depth` deltas, each on the one before.
  std::vector<CommitInfo> PublishChain(int depth) {
    std::vector<CommitInfo> saved = {Publish(0).value()};
    for (int i = 1; i <= depth; ++i) {
      const Bytes before = state.w;
      state.Step(static_cast<unsigned>(i));
      const auto delta =
          PublishDelta(static_cast<std::uint64_t>(i), saved.back().directory, before);
      EXPECT_TRUE(delta.ok()) << delta.status().ToString();
      saved.push_back(delta.value());
    }
    return saved;
  }
  Bytes MyRows(const Checkpoint& checkpoint) const {
    const auto first = static_cast<std::uint64_t>(rank()) * kWeightRows;
    return LoadRegion(checkpoint, "w", Region::Of({{first, 0}, {kWeightRows, kWeightColumns}}));
  }

  Weights state;
};

std::uint64_t StoredBytes(const Checkpoint& checkpoint, std::string_view tensor) {
  return checkpoint.TensorChunks(tensor).value().stored_bytes;
}

TEST(Delta, IsReadAsTheStateThatWasSaved) {
  WithRanks(2, [](Communicator& comm) {
    DeltaJob job(comm, {.fingerprints = true});
    const std::vector<CommitInfo> saved = job.PublishChain(3);
    const auto full = OpenFrom(job.posix, saved[0].directory);
    EXPECT_EQ(full->base(), std::nullopt);
    for (std::uint32_t depth = 1; depth < saved.size(); ++depth) {
      const auto delta = OpenFrom(job.posix, saved[depth].directory);
      ASSERT_EQ(delta->base()->depth, depth);
      EXPECT_EQ(delta->base()->attempt, saved[depth - 1].attempt);
      EXPECT_LT(StoredBytes(*delta, "w"), StoredBytes(*full, "w") / 50);
      EXPECT_EQ(StoredBytes(*delta, "fixed"), 0U);
      EXPECT_EQ(LoadWhole(*delta, "fixed"), job.state.fixed);
      EXPECT_EQ(FindDamage(job.posix, saved[depth].directory), "");
    }
    const auto last = OpenFrom(job.posix, saved.back().directory);
    EXPECT_EQ(job.MyRows(*last), job.state.w);
    // Parts of chunks, and other layouts.
    const Region column = Region::Of({{0, 777}, {2 * kWeightRows, 3}});
    const Bytes whole = LoadWhole(*last, "w");
    const Bytes part = LoadRegion(*last, "w", column);
    for (std::uint64_t row = 0; row < 2 * kWeightRows; ++row) {
      EXPECT_TRUE(std::equal(
          part.begin() + static_cast<std::ptrdiff_t>(row * 6),
          part.begin() + static_cast<std::ptrdiff_t>(row * 6 + 6),
          whole.begin() + static_cast<std::ptrdiff_t>((row * kWeightColumns + 777) * 2)));
    }
  });
}

TEST(Delta, IsReadByOtherRanksTogether) {
  WithRanks(3, [](Communicator& comm) {
    DeltaJob job(comm);
    const std::vector<CommitInfo> saved = job.PublishChain(2);
    const auto reader =
        CollectiveReader::Open(job.job, saved.back().directory, {.storage = job.posix}).value();
    // By columns.
    const auto rank = static_cast<std::uint64_t>(job.rank());
    const Region mine = Region::Of({{0, rank * 10000}, {3 * kWeightRows, 10000}});
    Bytes found(mine.element_count() * 2);
    ReadRequest request;
    request.Add("w", mine, MutableMemoryView::Host(found));
    const auto loaded = reader->Load(request, LoadContract::Partial());
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    const auto alone = OpenFrom(job.posix, saved.back().directory);
    EXPECT_EQ(found, LoadRegion(*alone, "w", mine));
  });
}

// The base may be cut in another way than the delta.
TEST(Delta, NeedsNoBaseOfTheSameLayout) {
  WithRanks(2, [](Communicator& comm) {
    DeltaJob job(comm);
    const Bytes before = job.state.w;
    Declaration columns;
    const auto rank = static_cast<std::uint64_t>(job.rank());
    const auto all = job.job.AllGather(before).value();
    Bytes whole = all[0];
    whole.insert(whole.end(), all[1].begin(), all[1].end());
    const std::uint64_t half = kWeightColumns / 2;
    columns
        .Add({.tensor = {.name = "w",
                         .dtype = DType::kBf16,
                         .shape = {2 * kWeightRows, kWeightColumns}},
              .region = Region::Of({{0, rank * half}, {2 * kWeightRows, half}})})
        .value();
    columns.Add({.tensor = ByteTensor("fixed", kFixedSize), .replicas = AllRanks(job.job)}).value();
    Sources sources(columns);
    ASSERT_TRUE(sources
                    .Bind("w", MemoryView::Host(ByteSpan(whole).subspan(rank * half * 2),
                                                {static_cast<std::int64_t>(kWeightColumns) * 2, 2}))
                    .ok());
    ASSERT_TRUE(sources.Bind("fixed", MemoryView::Host(job.state.fixed)).ok());
    const auto base =
        job.saver->Save(SaveTarget::InSeries(job.path("series")), {.step = 1}, sources);
    ASSERT_TRUE(base.ok()) << base.status().ToString();
    job.state.Step(5);
    const auto delta = job.PublishDelta(2, base->directory, before);
    ASSERT_TRUE(delta.ok()) << delta.status().ToString();
    EXPECT_EQ(job.MyRows(*OpenFrom(job.posix, delta->directory)), job.state.w);
    EXPECT_EQ(FindDamage(job.posix, delta->directory), "");
  });
}

// Each version is cut into larger or smaller chunks than its base: a chunk lies in many others, and
// each of these in a part of one.
TEST(Delta, DecodesEachChunkOfAChainOnce) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm);
    constexpr std::uint64_t kSize = 256 * kKiB;
    constexpr std::uint64_t kDepth = 7;
    Bytes data = NoiseBytes(7, kSize);
    Bytes before;
    std::string directory;
    for (std::uint64_t step = 0; step <= kDepth; ++step) {
      Declaration declaration;
      TensorSpec tensor = ByteTensor("w", kSize);
      tensor.chunk_size_bytes = step % 2 == 0 ? 64 * kKiB : 4 * kKiB;
      declaration.Add({.tensor = tensor}).value();
      Sources sources(declaration);
      Sources base_sources(declaration);
      ASSERT_TRUE(sources.Bind("w", MemoryView::Host(data)).ok());
      SaveOptions options = {.step = step};
      if (step > 0) {
        ASSERT_TRUE(base_sources.Bind("w", MemoryView::Host(before)).ok());
        options.base = SaveBase{directory, &base_sources};
      }
      const auto saved =
          job.saver->Save(SaveTarget::InSeries(job.path("series")), options, sources);
      ASSERT_TRUE(saved.ok()) << saved.status().ToString();
      directory = saved->directory;
      before = data;
      for (std::size_t at = step; at < kSize; at += 100) data[at] ^= std::byte{1};
    }
    const auto last =
        internal::load::CheckpointImpl::Make(directory, {.storage = job.posix}, {}).value();
    const auto read = [&](internal::load::ChunkDecoder& decoder) {
      Bytes found(kSize);
      const Status status =
          last->ReadAsBase(last->index().tensor(0), Region::Of({{0}, {kSize}}), decoder, found);
      EXPECT_EQ(found == before, status.ok());
      return status;
    };
    internal::load::ChunkDecoder decoder;
    EXPECT_TRUE(read(decoder).ok());
    EXPECT_EQ(decoder.base_chunks->decoded_bytes(), (kDepth + 1) * kSize);
    // Nothing is kept.
    internal::load::ChunkDecoder small;
    small.base_chunks = std::make_shared<internal::load::BaseChunks>(0, 0);
    small.is_of_first_base = true;
    const Status status = read(small);
    EXPECT_EQ(status.code(), Code::kLimitExceeded);
    EXPECT_THAT(status.message(), HasSubstr("raise memory_budget_bytes"));
    EXPECT_EQ(status.place().tensor, "w");
    // With the options of a user: 64 KiB are not enough, and the free bytes are.
    EXPECT_EQ(
        LoadWhole(*Checkpoint::Open(directory, {.memory_budget_bytes = 64 * kKiB}).value(), "w"),
        before);
  });
}

TEST(Delta, ChangesInPlaceWhatHoldsItsBase) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm);
    Bytes memory = job.state.w;
    const std::vector<CommitInfo> saved = job.PublishChain(1);
    const auto delta = OpenFrom(job.posix, saved.back().directory);
    Bytes fixed = job.state.fixed;
    ReadRequest request;
    request.Add("w", MutableMemoryView::Host(memory));
    request.Add("fixed", MutableMemoryView::Host(fixed));
    const auto loaded = delta->Load(request, {}, {.holds_base = true});
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    EXPECT_EQ(memory, job.state.w);
    EXPECT_EQ(fixed, job.state.fixed);
    // Memory that is not the base's is found: here it has the changes already.
    EXPECT_THAT(delta->Load(request, {}, {.holds_base = true}).status(),
                FailsRule(Code::kCorrupt, "R-CHK-02"));
    memory = NoiseBytes(1, memory.size());
    fixed[7] ^= std::byte{1};
    const Status wrong = delta->Load(request, {}, {.holds_base = true}).status();
    EXPECT_THAT(wrong, FailsRule(Code::kCorrupt, "R-CHK-02"));
    EXPECT_EQ(wrong.place().tensor, "fixed");
    const auto full = OpenFrom(job.posix, saved.front().directory);
    EXPECT_EQ(full->Load(request, {}, {.holds_base = true}).error().code(), Code::kInvalidArgument);
  });
}

// As readers and a verification see it.
void ExpectUnusable(const SaveJob& job, const std::string& directory, Code code,
                    const std::string& rule) {
  const Status opened = Checkpoint::Open(directory, {.storage = job.posix}).status();
  EXPECT_THAT(opened, FailsRule(code, rule));
  const VerifyReport report = Verify(directory, {.storage = job.posix}).value();
  ASSERT_EQ(report.violations.size(), 1U);
  EXPECT_EQ(report.violations.front().place().rule, rule);
  EXPECT_EQ(report.verdict, VerdictOf(opened));
}

TEST(Delta, AMissingBaseIsIncomplete) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm);
    const std::vector<CommitInfo> saved = job.PublishChain(2);
    const std::string elsewhere = job.path("elsewhere");
    ASSERT_EQ(std::rename(saved[0].directory.c_str(), elsewhere.c_str()), 0);
    for (const std::size_t depth : {1U, 2U}) {
      ExpectUnusable(job, saved[depth].directory, Code::kIncomplete, "R-DLT-03");
    }
    // Unless its directory is named.
    const auto delta = Checkpoint::Open(
        saved[2].directory,
        {.storage = job.posix, .base_directories = {{saved[0].attempt, elsewhere}}});
    ASSERT_TRUE(delta.ok()) << delta.status().ToString();
    EXPECT_EQ(job.MyRows(**delta), job.state.w);
    EXPECT_EQ(Verify(saved[1].directory,
                     {.storage = job.posix, .base_directories = {{saved[0].attempt, elsewhere}}})
                  .value()
                  .verdict,
              Verdict::kCommitted);
  });
}

TEST(Delta, ADamagedBaseIsFoundWhereItIsNeeded) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm);
    const std::vector<CommitInfo> saved = job.PublishChain(1);
    const auto full = OpenFrom(job.posix, saved[0].directory);
    const std::string blob = saved[0].directory + "/" + full->blobs().front().id.ToHex() + ".blob";
    const int fd = ::open(blob.c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::pwrite(fd, "damage", 6, 100000), 6);
    ASSERT_EQ(::close(fd), 0);
    const auto delta = OpenFrom(job.posix, saved[1].directory);
    Bytes memory(job.state.w.size());
    ReadRequest request;
    request.Add("w", MutableMemoryView::Host(memory));
    const Status status = delta->Load(request, LoadContract::Partial()).status();
    EXPECT_THAT(status, FailsRule(Code::kCorrupt, "R-CHK-02"));
    EXPECT_EQ(status.place().path, blob);
    const VerifyReport report = Verify(saved[1].directory, {.storage = job.posix}).value();
    EXPECT_EQ(report.verdict, Verdict::kCorrupt);
    // A base of which a blob is missing is found at once.
    ASSERT_EQ(::unlink(blob.c_str()), 0);
    ExpectUnusable(job, saved[1].directory, Code::kIncomplete, "R-BLB-01");
  });
}

TEST(Delta, AnotherBaseIsCorrupt) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm);
    const std::vector<CommitInfo> saved = job.PublishChain(1);
    const CommitInfo other = job.Publish(7).value();
    ASSERT_EQ(std::rename(saved[0].directory.c_str(), job.path("elsewhere").c_str()), 0);
    ASSERT_EQ(std::rename(other.directory.c_str(), saved[0].directory.c_str()), 0);
    ExpectUnusable(job, saved[1].directory, Code::kCorrupt, "R-DLT-04");
  });
}

// An attempt is one checkpoint, unless somebody says otherwise: the digest of the index decides.
TEST(Delta, ABaseOfTheSameAttemptIsStillAnother) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm);
    const std::vector<CommitInfo> saved = job.PublishChain(1);
    ASSERT_EQ(std::rename(saved[0].directory.c_str(), job.path("elsewhere").c_str()), 0);
    ASSERT_TRUE(job.posix->CreateDirectories(saved[0].directory).ok());
    const auto writer = BlobWriter::Create(*job.engine, saved[0].directory).value();
    const Bytes bytes(8);
    ASSERT_TRUE(writer->Add(ByteTensor("fixed", 8), Slice(0, 8), MemoryView::Host(bytes)).ok());
    const auto summaries = writer->Finish().value();
    ASSERT_TRUE(Commit(*job.posix, saved[0].directory,
                       {.attempt = saved[0].attempt, .step = saved[0].step}, summaries)
                    .ok());
    ExpectUnusable(job, saved[1].directory, Code::kCorrupt, "R-DLT-04");
  });
}

// Blobs that may have changes belong to a checkpoint with a base, and to no other.
TEST(Delta, ItsBlobsAreNotTakenByOtherCheckpoints) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm, {.frozen_groups = {"still"}});
    Declaration declaration;
    TensorSpec tensor = ByteTensor("w", 100000);
    tensor.group = "still";
    declaration.Add({.tensor = tensor}).value();
    Bytes bytes = NoiseBytes(3, 100000);
    const auto publish = [&](std::uint64_t step, const std::optional<std::string>& base) {
      Sources sources(declaration);
      EXPECT_TRUE(sources.Bind("w", MemoryView::Host(bytes)).ok());
      SaveOptions options{.step = step};
      if (base) options.base = SaveBase{*base, &sources};
      return job.saver->Save(SaveTarget::InSeries(job.path("series")), options, sources).value();
    };
    const CommitInfo full = publish(1, {});
    bytes[5] ^= std::byte{1};  // so that nothing is linked to the delta
    const CommitInfo delta = publish(2, full.directory);
    const CommitInfo next = publish(3, {});
    EXPECT_EQ(next.reused_blob_count, 0U);
    EXPECT_EQ(LoadWhole(*OpenFrom(job.posix, next.directory), "w"), bytes);
    const auto ids = ListBlobs(*job.posix, delta.directory).value();
    const std::vector<BlobSummary> summaries = {
        ReadSummary(*job.posix, delta.directory, ids.front()).value()};
    const std::string linked = job.path("linked");
    ASSERT_EQ(::mkdir(linked.c_str(), 0700), 0);
    const std::string name = "/" + ids.front().ToHex() + ".blob";
    ASSERT_EQ(::link((delta.directory + name).c_str(), (linked + name).c_str()), 0);
    const Status status = Commit(*job.posix, linked, {.reuses_blobs = true}, summaries).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("has no base"));
  });
}

TEST(Delta, ATensorThatTheBaseLacksIsCorrupt) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm);
    const auto open = [&](const std::string& directory) {
      return internal::load::CheckpointImpl::Make(directory, {.storage = job.posix}, {}).value();
    };
    const auto weights = open(job.Publish(1).value().directory);
    Declaration others;
    others.Add({.tensor = ByteTensor("fixed", kFixedSize / 2)}).value();
    const auto base = open(job.Save(others, "others").value().directory);
    internal::load::ChunkDecoder decoder;
    Bytes memory(8);
    for (std::size_t i = 0; i < weights->tensor_count(); ++i) {
      const auto tensor = weights->index().tensor(i);
      const Region first =
          Region::Of({Shape(tensor.shape().size()), Shape(tensor.shape().size(), 1)});
      const MutableByteSpan to = MutableByteSpan(memory).first(tensor.element_size());
      EXPECT_THAT(base->ReadAsBase(tensor, first, decoder, to),
                  FailsRule(Code::kCorrupt, "R-DLT-05"));
      EXPECT_TRUE(weights->ReadAsBase(tensor, first, decoder, to).ok());
    }
  });
}

TEST(Delta, ABaseThatDoesNotFitFailsTheSaveOnAllRanks) {
  WithRanks(2, [](Communicator& comm) {
    DeltaJob job(comm);
    const CommitInfo full = job.Publish(1).value();
    const auto fails = [&](const Result<CommitInfo>& saved, Code code, const std::string& text) {
      EXPECT_EQ(saved.error().code(), code);
      EXPECT_THAT(saved.error().message(), HasSubstr(text));
    };
    fails(job.PublishDelta(2, job.path("nowhere"), job.state.w), Code::kNotFound, "the base");
    fails(job.PublishDelta(2, job.rank() == 0 ? full.directory : job.path("x"), job.state.w),
          Code::kInvalidArgument, "base");
    Declaration others;
    others.Add({.tensor = ByteTensor("other", 40), .replicas = AllRanks(job.job)}).value();
    const CommitInfo other = job.Save(others, "others").value();
    fails(job.PublishDelta(2, other.directory, job.state.w), Code::kInvalidArgument,
          "save without a base");
    Weights fewer(job.job, kWeightRows / 2);
    const Sources wrong = fewer.Bound();
    const Sources sources = job.state.Bound();
    fails(SaveInMode(*job.saver, SaveTarget::InSeries(job.path("series")),
                     {.step = 2, .base = SaveBase{full.directory, &wrong}}, sources),
          Code::kInvalidArgument, "slot 0 of the base's declaration");
    fails(SaveInMode(*job.saver,
                     SaveTarget::Staged(job.path("local"), SaveTarget::InSeries(job.path("s2"))),
                     {.step = 2, .base = SaveBase{full.directory, &sources}}, sources),
          Code::kInvalidArgument, "staged");
    // What failed left nothing behind.
    job.Barrier();
    EXPECT_EQ(FileNames(*job.posix, job.path("series")).size(), 1U);
  });
}

std::string KeepOf(const SaveJob& job, const std::string& directory) {
  const Bytes content = ReadWholeFile(*job.posix, directory, "KEEP");
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

TEST(Delta, ABaseIsPinnedBeforeTheMarker) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm);
    const std::vector<CommitInfo> saved = job.PublishChain(2);
    EXPECT_EQ(KeepOf(job, saved[0].directory), "delta\n");
    EXPECT_EQ(KeepOf(job, saved[1].directory), "delta\n");
    EXPECT_THAT(FileNames(*job.posix, saved[2].directory),
                ::testing::Not(::testing::Contains("KEEP")));
    // A person's stays, and that of another series is as a person's.
    ASSERT_TRUE(SetKept(*job.posix, saved[2].directory, true).ok());
    const auto more = job.PublishDelta(3, saved[2].directory, job.state.w);
    ASSERT_TRUE(more.ok());
    EXPECT_EQ(KeepOf(job, saved[2].directory), "");
    const Sources sources = job.state.Bound();
    const auto away =
        job.saver->Save(SaveTarget::Directory(job.path("away/one")),
                        {.step = 4, .base = SaveBase{more->directory, &sources}}, sources);
    ASSERT_TRUE(away.ok()) << away.status().ToString();
    EXPECT_EQ(KeepOf(job, more->directory), "");
    // The order of the calls: a base that cannot be pinned is no base.
    job.state.Step(9);
    const std::string last = job.Publish(5).value().directory;
    job.storage->Fail({.op = StorageOp::kCreate, .name = "KEEP"});
    const auto failed = job.PublishDelta(6, last, job.state.w);
    EXPECT_EQ(failed.error().code(), Code::kIo) << failed.status().ToString();
    EXPECT_FALSE(OutcomeIsUnknown(failed.error()));
  });
}

// The delta is there, and says of itself that its base is not.
TEST(Delta, ABaseThatGoesMeanwhileIsAnError) {
  for (const std::string gone : {"COMMIT", "KEEP"}) {
    WithRanks(2, [&](Communicator& comm) {
      DeltaJob job(comm);
      const CommitInfo full = job.Publish(1).value();
      const Bytes before = job.state.w;
      job.state.Step(1);
      job.storage->SetHook([&](StorageOp op, std::string_view) {
        const std::string file = full.directory + "/" + gone;
        if (op == StorageOp::kPublish) ::unlink(file.c_str());
      });
      const Status status = job.PublishDelta(2, full.directory, before).status();
      EXPECT_THAT(status, FailsRule(Code::kIncomplete, "R-DLT-10"));
      EXPECT_TRUE(OutcomeIsUnknown(status));
      job.Barrier();
      const std::vector<std::string> names = FileNames(*job.posix, job.path("series"));
      EXPECT_EQ(names.size(), 2U);
    });
  }
}

// The copy of a delta in another series, under the same name.
Result<RepackReport> CopyTo(const DeltaJob& job, const std::string& series, const CommitInfo& delta,
                            CopyOptions options = {}) {
  options.repack.from_storage = job.posix;
  options.repack.to_storage = job.posix;
  const std::string name = delta.directory.substr(delta.directory.rfind('/') + 1);
  return CopyCheckpoint({.from = delta.directory, .to = job.path(series + "/" + name)}, options);
}

TEST(Delta, ACopyNeedsTheBaseBesideItAndPinsIt) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm);
    const std::vector<CommitInfo> saved = job.PublishChain(2);
    const Status refused = CopyTo(job, "other", saved[1]).status();
    EXPECT_THAT(refused, FailsRule(Code::kIncomplete, "R-DLT-03"));
    EXPECT_THAT(refused.message(), HasSubstr("ckpt flatten"));
    EXPECT_EQ(job.posix->OpenDirectory(job.path("other")).error().code(), Code::kNotFound);
    for (const CommitInfo& one : saved) {
      const auto copied = CopyTo(job, "other", one);
      ASSERT_TRUE(copied.ok()) << copied.status().ToString();
      EXPECT_TRUE(copied->is_identical);
    }
    const SeriesListing copies = Series(job.path("other"), job.posix).List().value();
    EXPECT_TRUE(copies.entries.at(1).is_base);
    EXPECT_TRUE(copies.entries.at(2).is_base);
    EXPECT_EQ(job.MyRows(*OpenFrom(job.posix, copies.entries.at(0).path)), job.state.w);
    EXPECT_THAT(ThinCheckpoint({.from = saved[1].directory},
                               {.drop = {"fixed"},
                                .remove_source = true,
                                .repack = {.from_storage = job.posix, .to_storage = job.posix}})
                    .status(),
                FailsRule(Code::kInvalidArgument, "R-DLT-11"));
  });
}

TEST(Delta, ACopyThatIsFlatHasNoBase) {
  WithRanks(1, [](Communicator& comm) {
    DeltaJob job(comm, {.fingerprints = true});
    const std::vector<CommitInfo> saved = job.PublishChain(2);
    const auto source = OpenFrom(job.posix, saved[2].directory);
    for (const CopyOptions& options : {CopyOptions{.flatten = true}, CopyOptions{.match = {"w"}}}) {
      const std::string series = options.flatten ? "flat" : "some";
      const auto copied = CopyTo(job, series, saved[2], options);
      ASSERT_TRUE(copied.ok()) << copied.status().ToString();
      EXPECT_FALSE(copied->is_identical);
      EXPECT_NE(copied->attempt, saved[2].attempt);
      const auto entry = Series(job.path(series), job.posix).List().value().entries.at(0);
      EXPECT_FALSE(entry.is_delta);
      const auto copy = OpenFrom(job.posix, entry.path);
      EXPECT_EQ(copy->base(), std::nullopt);
      EXPECT_EQ(job.MyRows(*copy), job.state.w);
      EXPECT_EQ(copy->FindTensor("w")->fingerprint, source->FindTensor("w")->fingerprint);
      EXPECT_EQ(copy->TensorChunks("w")->codecs.back().codec, Codec::kNone);
      EXPECT_EQ(FindDamage(job.posix, entry.path), "");
    }
    // Without a base there is nothing to flatten.
    EXPECT_TRUE(CopyTo(job, "same", saved[0], {.flatten = true}).value().is_identical);
  });
}

}  // namespace
}  // namespace sealpoint::testing
