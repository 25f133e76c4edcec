// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STATE_COLLECTIVE_LOAD_JOB_H_
#define SEALPOINT_TESTS_SUPPORT_STATE_COLLECTIVE_LOAD_JOB_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sealpoint/collective_reader.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/storage/reading_storage.h"

namespace sealpoint::testing {

// One rank with a copy of a checkpoint in its own memory.
struct CollectiveLoadJob {
  CollectiveLoadJob(Communicator& communicator, MiniContainer stored,
                    const std::function<void(MiniContainer&)>& damage = {})
      : comm(communicator), container(std::move(stored)) {
    if (damage) damage(container);
    StoreFiles(*memory, "c", container.files);
  }

  std::unique_ptr<CollectiveReader> Open() {
    auto reader = CollectiveReader::Open(comm, "c", {.storage = storage});
    EXPECT_TRUE(reader.ok()) << reader.error().ToString();
    storage->ClearLog();
    return reader.ok() ? std::move(reader).value() : nullptr;
  }
  // Stored payload bytes that this rank read.
  std::uint64_t PayloadRead() const {
    std::uint64_t bytes = 0;
    for (const ReadCall& call : storage->log().reads) {
      for (const auto& [number, blob] : container.blobs) {
        if (call.name == blob.name && call.offset < blob.chunks_end) bytes += call.size;
      }
    }
    return bytes;
  }
  // The file of which this rank read payload first.
  std::string FirstFileRead() const {
    for (const ReadCall& call : storage->log().reads) {
      for (const auto& [number, blob] : container.blobs) {
        if (call.name == blob.name && call.offset < blob.chunks_end) return call.name;
      }
    }
    return {};
  }
  std::uint64_t Sum(std::uint64_t mine) {
    std::uint64_t sum = 0;
    for (const Bytes& answer : comm.AllGather(AsBytes(std::to_string(mine))).value()) {
      sum += std::stoull(std::string(reinterpret_cast<const char*>(answer.data()), answer.size()));
    }
    return sum;
  }
  std::uint64_t rank() const { return static_cast<std::uint64_t>(comm.rank()); }
  std::uint64_t size() const { return static_cast<std::uint64_t>(comm.size()); }

  Communicator& comm;
  MiniContainer container;
  std::shared_ptr<Storage> memory = MemoryStorage();
  std::shared_ptr<ReadingStorage> storage = std::make_shared<ReadingStorage>(memory);
};

inline void OnRanks(const std::function<void(Communicator&)>& body) {
  for (const int size : RankCounts()) WithRanks(size, body);
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STATE_COLLECTIVE_LOAD_JOB_H_
