// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_SERIES_SERIES_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_SERIES_SERIES_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sealpoint/object_store.h"
#include "sealpoint/series.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/support/storage/place.h"

namespace sealpoint::testing {

inline std::shared_ptr<Storage> NewPlace() {
  return IsInObjects() ? ObjectStorage(std::make_shared<MemoryObjectStore>()).value()
                       : MemoryStorage();
}

class PlaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNotHere(kNotInObjects); !why.empty()) GTEST_SKIP() << why;
  }

 private:
  static constexpr char kPutAtOnce[] = "one put makes a marker, durable at once";
  // What makes no sense in an object store, and why.
  static inline const std::map<std::string, std::string> kNotInObjects = {
      {"SeriesRemoveTest.PublishesAVoidMarkerFirst",
       "no syncs; SeriesObjectsTest has the order of requests"},
      {"SeriesRemoveTest.AFileThatStoodUnderTheMarkersUnpublishedNameStays", kPutAtOnce},
      {"SeriesRemoveTest.AVoidMarkerThatIsNotDurableRemovesNothing", kPutAtOnce},
      {"SeriesRemoveTest.AVoidMarkerThatMayBeDurableLeavesAllAsItIs", kPutAtOnce},
      {"SeriesRemoveTest.ACleanUpThatIsNotDurableIsAnError", kPutAtOnce},
      {"SeriesResumeTest.ACheckpointIsNamedByADot", "a URI has no directory named by a dot"},
      {"SeriesResumeTest.AFileSystemThatIsNotThereIsNoEmptySeries",
       "a bucket has no directories: that it can be listed says enough"},
  };
};

// A series in memory, of small checkpoints made without the writer.
class SeriesTest : public PlaceTest {
 protected:
  SeriesTest() { EXPECT_TRUE(memory_->CreateDirectories(InPlace("series")).ok()); }

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
  static std::string Path(const std::string& name) { return InPlace("series/" + name); }
  static std::string BlobOf(std::uint8_t attempt) { return Container(attempt).blobs.at(0).name; }

  const std::shared_ptr<Storage> memory_ = NewPlace();
  const std::shared_ptr<FailingStorage> storage_ = std::make_shared<FailingStorage>(memory_);
  const Series series_{InPlace("series"), storage_};
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_SERIES_SERIES_FIXTURE_H_
