// SPDX-License-Identifier: Apache-2.0
// A save without a Sealpoint communicator: each rank writes blobs on its own, the program carries
// their summaries to one rank by means of its own (here MPI_Gatherv), and that rank commits:
//   mpirun -n 4 own_collectives checkpoint
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "or_abort.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/commit.h"

namespace sp = sealpoint;

namespace {

// Writes this rank's 100 rows. Returns the summaries of its blobs, which are durable then.
sp::Result<sp::Bytes> WriteRows(sp::BlobWriter& writer, int rank, int size) {
  const auto first_row = static_cast<std::uint64_t>(rank) * 100;
  const auto row_count = static_cast<std::uint64_t>(size) * 100;
  const std::vector<float> rows(100 * 64, static_cast<float>(rank));
  const sp::TensorSpec tensor = {.name = "w", .dtype = sp::DType::kF32, .shape = {row_count, 64}};
  const sp::Box box = {.offset = {first_row, 0}, .extent = {100, 64}};
  if (const sp::Status s = writer.Add(tensor, box, sp::MemoryView::Host(rows)); !s.ok()) return s;
  const auto summaries = writer.Finish();
  return summaries.ok() ? sp::Result(sp::SerializeSummaries(*summaries)) : summaries.error();
}

// The summaries of all ranks, on rank 0; elsewhere the result has no meaning.
sp::Result<std::vector<sp::BlobSummary>> Gather(const sp::Bytes& own, int size) {
  const int length = static_cast<int>(own.size());
  std::vector<int> lengths(static_cast<std::size_t>(size)), offsets(lengths.size() + 1);
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::partial_sum(lengths.begin(), lengths.end(), offsets.begin() + 1);
  sp::Bytes all(static_cast<std::size_t>(offsets.back()));
  MPI_Gatherv(own.data(), length, MPI_BYTE, all.data(), lengths.data(), offsets.data(), MPI_BYTE, 0,
              MPI_COMM_WORLD);
  std::vector<sp::BlobSummary> summaries;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0)
      return sp::Status(sp::Code::kInvalidArgument, std::to_string(i) + " wrote nothing");
    const sp::ByteSpan part(all.begin() + offsets[i], all.begin() + offsets[i + 1]);
    const auto some = sp::DeserializeSummaries(part);  // verified
    if (!some.ok()) return some.error();
    summaries.insert(summaries.end(), some->begin(), some->end());
  }
  return summaries;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string directory = argc > 1 ? argv[1] : "checkpoint";
  const sp::Status made = sp::PosixStorage()->CreateDirectories(directory);
  MPI_Barrier(MPI_COMM_WORLD);
  const auto engine = OrAbort(sp::Engine::Create());
  const auto writer = made.ok() ? sp::BlobWriter::Create(*engine, directory) : made;
  const auto written = writer.ok() ? WriteRows(**writer, rank, size) : writer.error();
  if (!written.ok())
    std::fprintf(stderr, "rank %d: %s\n", rank, written.error().ToString().c_str());
  const auto summaries = Gather(written.value_or(sp::Bytes()), size);  // also if this rank failed
  sp::Status status = summaries.status();
  if (rank == 0 && status.ok())
    status = sp::Commit(*sp::PosixStorage(), directory, {}, *summaries).status();
  int outcome = status.ok() ? 0 : sp::OutcomeIsUnknown(status) ? 2 : 1;
  MPI_Bcast(&outcome, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (outcome == 1 && writer.ok()) static_cast<void>((*writer)->Abandon());  // removes its files
  if (rank == 0) std::printf("%s\n", outcome == 0 ? "committed" : status.ToString().c_str());
  MPI_Finalize();
  return outcome;
}
