// SPDX-License-Identifier: Apache-2.0
//
// plan_load DIRECTORY MESH: what the library says of a collective load of the checkpoint on this
// mesh, placed as it was stored: a line per rank with the bytes requested and read, the files and
// the requests of that rank alone, then the bytes that all read together.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sealpoint/collective_reader.h"
#include "sealpoint/communicator.h"
#include "sealpoint/placement.h"
#include "tests/cli/take.h"

namespace {

using namespace sealpoint;  // a program of one file

CollectiveLoadPlan PlanOnRank(Communicator& comm, const std::string& path, const Mesh& mesh) {
  const auto reader = Take(CollectiveReader::Open(comm, path));
  std::vector<std::vector<std::byte>> memory;
  ReadRequest request;
  for (const TensorInfo& tensor : reader->checkpoint().tensors()) {
    const Placement placement = Take(ParsePlacement(tensor.placement));
    const LocalLayout layout = Take(PlaceTensor(mesh, comm.rank(), tensor.shape, placement));
    memory.emplace_back(Take(ElementCount(layout.shape)) * tensor.element_size);
    request.Add(tensor.name, layout, MutableMemoryView::Host(memory.back()));
  }
  return Take(reader->Plan(request));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const Mesh mesh = Take(Mesh::Parse(argv[2]));
  auto communicators = ThreadCommunicators(mesh.size());
  std::vector<CollectiveLoadPlan> plans(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    threads.emplace_back(
        [&, rank] { plans[rank] = PlanOnRank(*communicators[rank], argv[1], mesh); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const RankLoad& rank_load : plans.front().ranks) {
    std::printf("%ju %ju %ju %ju\n", std::uintmax_t{rank_load.alone.bytes_requested},
                std::uintmax_t{rank_load.alone.bytes_read}, std::uintmax_t{rank_load.alone.files},
                std::uintmax_t{rank_load.alone.requests});
  }
  std::printf("%ju\n", std::uintmax_t{plans.front().bytes_read});
  return 0;
}
