// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_SERIES_SERIES_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_SERIES_SERIES_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lib/format/marker.h"
#include "sealpoint/series.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {

// The marker of a directory that was an attempt and will never be a checkpoint.
inline Bytes VoidMarker(std::uint8_t attempt) {
  const auto marker = internal::EncodeMarker(
      {.kind = internal::MarkerKind::kVoid, .attempt = MiniSpec::MakeId(attempt)});
  return Bytes(marker.begin(), marker.end());
}

// A series in memory, of small checkpoints made without the writer.
class SeriesTest : public ::testing::Test {
 protected:
  SeriesTest() { EXPECT_TRUE(memory_->CreateDirectories("series").ok()); }

  static MiniContainer Container(std::uint8_t attempt, std::uint8_t parent = 0,
                                 std::uint64_t sequence = 1) {
    return BuildInSeries(attempt, parent, sequence);
  }
  void Put(const std::string& name, std::uint8_t attempt, std::uint8_t parent = 0,
           std::uint64_t sequence = 1) {
    StoreFiles(*memory_, Path(name), Container(attempt, parent, sequence).files);
  }
  void PutFile(const std::string& name, const std::string& file) {
    ASSERT_TRUE(memory_->CreateDirectories(Path(name)).ok());
    const Bytes content = NoiseBytes(1, 10);
    ReplaceFile(*memory_, Path(name), file, &content);
  }
  static std::string Path(const std::string& name) { return "series/" + name; }
  static std::string BlobOf(std::uint8_t attempt) { return Container(attempt).blobs.at(0).name; }

  const std::shared_ptr<Storage> memory_ = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage_ = std::make_shared<FailingStorage>(memory_);
  const Series series_{"series", storage_};
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_SERIES_SERIES_FIXTURE_H_
