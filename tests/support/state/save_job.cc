// SPDX-License-Identifier: Apache-2.0
#include "tests/support/state/save_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_in_mode.h"

namespace sealpoint::testing {

SaveJob::SaveJob(Communicator& job_comm, SaverOptions options) : job(job_comm), comm(job_comm) {
  Bytes path;
  if (job.rank() == 0) {
    dir_.emplace();
    const ByteSpan bytes = AsBytes(dir_->path());
    path.assign(bytes.begin(), bytes.end());
  }
  EXPECT_TRUE(job.Broadcast(path, 0).ok());
  for (const std::byte byte : path) root_.push_back(static_cast<char>(byte));
  if (options.deadline == kDefaultDeadline) options.deadline = std::chrono::minutes(1);
  saver = Saver::Create(*engine, comm, std::move(options)).value();
}

// No rank removes the directory before all have finished with it.
SaveJob::~SaveJob() { static_cast<void>(job.Barrier()); }

Result<CommitInfo> SaveJob::Save(const Declaration& declaration, const std::string& directory) {
  return Save(declaration, SaveTarget::Directory(path(directory)));
}

Result<CommitInfo> SaveJob::Save(const Declaration& declaration, const SaveTarget& target,
                                 const SaveOptions& options) {
  Sources sources(declaration);
  std::vector<Bytes> memory;
  for (std::size_t slot = 0; slot < declaration.tensors().size(); ++slot) {
    const DeclaredTensor& held = declaration.tensors()[slot];
    const std::uint32_t element_size = DTypeSizeBytes(held.tensor.dtype);
    const Shape& shape = held.tensor.shape;
    const std::uint64_t elements =
        std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
    if (elements == 0) continue;
    const Bytes whole = Content(held.tensor.name, elements * element_size);
    const Region region = held.region.value_or(Region::Whole(shape));
    memory.push_back(ExtractRegion(whole, shape, element_size, region));
    EXPECT_TRUE(sources.Bind(slot, MemoryView::Host(memory.back())).ok());
  }
  for (const ObjectSpec& object : declaration.objects()) {
    EXPECT_TRUE(sources.BindObject(object.name, AsBytes(object.name)).ok());
  }
  const auto spoil = [&memory] {
    for (Bytes& bytes : memory) std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
  };
  return SaveInMode(*saver, target, options, sources, spoil);
}

void SaveJob::ExpectSameOnAllRanks(const Status& status) {
  const std::string mine = status.ToString();
  const auto all = job.AllGather(AsBytes(mine)).value();
  EXPECT_FALSE(status.ok());
  const Bytes& first = all.front();
  for (const Bytes& other : all) EXPECT_EQ(other, first) << "rank " << rank() << ": " << mine;
}

void OnJobs(const std::function<void(SaveJob&)>& body, int size_min) {
  for (const int size : RankCounts()) {
    if (size < size_min) continue;
    if (::testing::Test::HasFailure()) return;
    WithRanks(size, [&](Communicator& comm) {
      SaveJob job(comm);
      body(job);
    });
  }
}

std::vector<int> AllRanks(const Communicator& comm) {
  std::vector<int> all(static_cast<std::size_t>(comm.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Bytes Content(const std::string& name, std::uint64_t byte_count) {
  return NoiseBytes(std::hash<std::string>()(name), byte_count);
}

Declaration UsualDeclaration(const Communicator& comm) {
  const auto rank = static_cast<std::uint64_t>(comm.rank());
  const auto size = static_cast<std::uint64_t>(comm.size());
  Declaration declaration;
  declaration
      .Add({.tensor = {.name = "w",
                       .dtype = DType::kF32,
                       .shape = {size * kUsualRows, kUsualColumns},
                       .chunk_size_bytes = 16 * kKiB},
            .region = Region::Of(
                {.offset = {rank * kUsualRows, 0}, .extent = {kUsualRows, kUsualColumns}})})
      .value();
  declaration.Add({.tensor = ByteTensor("shared", kSharedSize), .replicas = AllRanks(comm)})
      .value();
  const Status added =
      declaration.AddObject({.name = "rng." + std::to_string(rank), .media_type = "text/plain"});
  EXPECT_TRUE(added.ok());
  return declaration;
}

}  // namespace sealpoint::testing
