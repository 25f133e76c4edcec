// SPDX-License-Identifier: Apache-2.0
//
// Processes that know nothing of each other but a directory and a pipe each make one checkpoint.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "sealpoint/commit.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kProcesses = 4;
constexpr std::uint64_t kRows = 40;
constexpr std::uint64_t kColumns = 5000;

Bytes Expected() { return NoiseBytes(21, kProcesses * kRows * kColumns * 4); }

TensorSpec Matrix() {
  return {.name = "w",
          .dtype = DType::kF32,
          .shape = {kProcesses * kRows, kColumns},
          .chunk_size_bytes = 64 * kKiB};
}

std::vector<BlobSummary> WritePart(const std::string& directory, std::uint64_t part) {
  const auto engine = SmallEngine(PosixStorage(), 4, 64 * kKiB);
  const auto writer = BlobWriter::Create(*engine, directory).value();
  const Bytes all = Expected();
  const Region region = Region::Of({.offset = {part * kRows, 0}, .extent = {kRows, kColumns}});
  const auto view =
      MemoryView::Host(std::span(all).subspan(part * kRows * kColumns * 4, kRows * kColumns * 4));
  const std::string rng = "state of " + std::to_string(part);
  if (!writer->Add(Matrix(), region, view).ok()) return {};
  if (!writer
           ->AddObject({.name = "rng." + std::to_string(part), .media_type = "text/plain"},
                       AsBytes(rng))
           .ok())
    return {};
  return writer->Finish().value();
}

// In a child: writes its part and sends the summaries.
[[noreturn]] void RunChild(const std::string& directory, std::uint64_t part, int pipe_end) {
  alarm(60);
  const Bytes bytes = SerializeSummaries(WritePart(directory, part));
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = write(pipe_end, bytes.data() + sent, bytes.size() - sent);
    if (count <= 0) _exit(1);
    sent += static_cast<std::size_t>(count);
  }
  close(pipe_end);
  _exit(0);
}

Bytes ReadToEnd(int pipe_end) {
  Bytes bytes;
  std::byte buffer[4096];
  ssize_t count = 0;
  while ((count = read(pipe_end, buffer, sizeof(buffer))) > 0) {
    bytes.insert(bytes.end(), buffer, buffer + count);
  }
  close(pipe_end);
  return bytes;
}

// The serialised summaries of all processes.
std::vector<Bytes> WriteInProcesses(const std::string& directory) {
  std::vector<pid_t> children;
  std::vector<int> pipes;
  for (std::uint64_t part = 0; part < kProcesses; ++part) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      RunChild(directory, part, ends[1]);
    }
    close(ends[1]);
    children.push_back(child);
    pipes.push_back(ends[0]);
  }
  std::vector<Bytes> received;
  for (const int pipe_end : pipes) received.push_back(ReadToEnd(pipe_end));
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return received;
}

void ExpectWhole(const std::string& directory) {
  EXPECT_EQ(FindDamage(PosixStorage(), directory), "");
  const auto checkpoint = OpenFrom(PosixStorage(), directory);
  EXPECT_EQ(LoadWhole(*checkpoint, "w"), Expected());
  const ByteSpan rng = AsBytes(std::string_view("state of 3"));
  EXPECT_EQ(checkpoint->ReadObject("rng.3").value(), Bytes(rng.begin(), rng.end()));
}

TEST(SaveWithoutRanksTest, SummariesTravelThroughPipes) {
  const TempDir dir;
  std::vector<BlobSummary> summaries;
  for (const Bytes& bytes : WriteInProcesses(dir.path())) {
    for (BlobSummary& blob_summary : DeserializeSummaries(bytes).value())
      summaries.push_back(blob_summary);
  }
  EXPECT_EQ(Commit(*PosixStorage(), dir.path(), {}, summaries).value().blob_count, kProcesses);
  ExpectWhole(dir.path());
}

TEST(SaveWithoutRanksTest, SummariesAreReadBackFromTheBlobs) {
  const TempDir dir;
  WriteInProcesses(dir.path());
  const auto storage = PosixStorage();
  std::vector<BlobSummary> summaries;
  for (const BlobId& blob : ListBlobs(*storage, dir.path()).value()) {
    summaries.push_back(ReadSummary(*storage, dir.path(), blob).value());
  }
  EXPECT_EQ(Commit(*storage, dir.path(), {}, summaries).value().blob_count, kProcesses);
  ExpectWhole(dir.path());
}

}  // namespace
}  // namespace sealpoint::testing
