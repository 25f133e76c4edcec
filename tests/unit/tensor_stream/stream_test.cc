// SPDX-License-Identifier: Apache-2.0
#include "lib/tensor_stream/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/container/mini_container.h"

namespace sealpoint::internal::tensor_stream {
namespace {

using pipeline::ByteMeter;

constexpr std::uint64_t kTensorBytes = 4096;
constexpr std::size_t kTensorCount = 40;

// Tensor number i has bytes of value i.
std::unique_ptr<Checkpoint> ManyTensors() {
  testing::MiniSpec spec;
  for (std::size_t i = 0; i < kTensorCount; ++i) {
    spec.tensors.push_back(testing::CutTensor(
        std::to_string(100 + i), DType::kUInt8, {kTensorBytes},
        Bytes(kTensorBytes, static_cast<std::byte>(i)), {Region::Whole({kTensorBytes})}));
  }
  const std::shared_ptr<Storage> storage = MemoryStorage();
  testing::StoreFiles(*storage, "c", testing::BuildMini(spec).files);
  return Checkpoint::Open("c", {.storage = storage}).value();
}

class TensorStream : public ::testing::Test {
 protected:
  TensorStream() {
    std::vector<std::size_t> all(kTensorCount);
    std::iota(all.begin(), all.end(), std::size_t{0});
    pieces_ = WholeTensors(*checkpoint_, all);
  }

  const std::unique_ptr<Checkpoint> checkpoint_ = ManyTensors();
  std::vector<Piece> pieces_;
};

TEST_F(TensorStream, ReadsLanesInBatchesThatFitInOrder) {
  ByteMeter meter({});
  const StreamOptions options{.threads = 3, .batch_bytes = 3 * kTensorBytes};
  const std::vector<Lane> lanes = Divide(pieces_, 4);
  std::array<std::vector<std::size_t>, 4> seen;
  const Status status =
      ReadLanes(options, lanes, meter, [&](std::size_t number, const auto& reader) {
        return reader.ForEachBatch([&](const Batch& batch) -> Status {
          EXPECT_LE(batch.pieces().size(), 3U);
          SEALPOINT_RETURN_IF_ERROR(LoadSide({*checkpoint_}, 0, batch));
          for (std::size_t i = 0; i < batch.pieces().size(); ++i) {
            EXPECT_THAT(batch.bytes(i, 0),
                        ::testing::Each(static_cast<std::byte>(batch.pieces()[i].tensor)));
            seen.at(number).push_back(batch.pieces()[i].tensor);
          }
          return {};
        });
      });
  EXPECT_TRUE(status.ok()) << status.ToString();
  for (std::size_t lane = 0; lane < 4; ++lane) {
    std::vector<std::size_t> expected(10);
    std::iota(expected.begin(), expected.end(), 10 * lane);
    EXPECT_EQ(seen.at(lane), expected);
  }
  EXPECT_EQ(meter.bytes_done(), kTensorCount * kTensorBytes);
}

TEST_F(TensorStream, LoadsOnlyWhatIsChosen) {
  ByteMeter meter({});
  const std::vector<Lane> lanes{Lane(pieces_).first(2)};
  const auto load_first = [](const Piece& piece) -> std::optional<PlaneSource> {
    if (piece.tensor != 0) return {};
    return PlaneSource{.tensor = "102"};
  };
  const Status status =
      ReadLanes({.batch_bytes = kMiB}, lanes, meter, [&](std::size_t, const LaneReader& reader) {
        return reader.ForEachBatch([&](const Batch& batch) -> Status {
          SEALPOINT_RETURN_IF_ERROR(batch.Load(*checkpoint_, load_first));
          EXPECT_EQ(batch.bytes(0, 0).front(), std::byte{2});
          EXPECT_EQ(batch.bytes(1, 0).front(), std::byte{0});
          return {};
        });
      });
  EXPECT_TRUE(status.ok()) << status.ToString();
}

// The first batch is read last.
TEST_F(TensorStream, HandsResultsOverInOrder) {
  const std::vector<Piece> many = [&] {
    std::vector<Piece> repeated;
    for (int i = 0; i < 100; ++i) repeated.insert(repeated.end(), pieces_.begin(), pieces_.end());
    return repeated;
  }();
  ByteMeter meter({});
  std::atomic<int> waits = 0;
  std::atomic<bool> is_later_read = false;
  const auto last_byte = [&](const Piece& piece, const std::array<ByteSpan, 1>& bytes) {
    if (&piece == &many.back()) is_later_read = true;
    while (&piece == many.data() && !is_later_read && ++waits < 1000) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return bytes[0].back();
  };
  std::size_t taken = 0;
  const Status status =
      ForEachPiece<std::byte>(std::array{Side{*checkpoint_}}, many, 4, meter, last_byte,
                              [&](const Piece& piece, std::byte value) {
                                EXPECT_EQ(piece.tensor, taken++ % kTensorCount);
                                EXPECT_EQ(value, static_cast<std::byte>(piece.tensor));
                              });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(taken, many.size());
}

TEST_F(TensorStream, EndsWithTheErrorOfItsCaller) {
  ByteMeter meter([](std::uint64_t done, std::uint64_t) {
    return done < 5 * kTensorBytes ? Status() : Status(Code::kCancelled, "enough");
  });
  std::atomic<int> batches = 0;
  const std::vector<Lane> lanes{pieces_};
  const Status status = ReadLanes({.batch_bytes = kTensorBytes}, lanes, meter,
                                  [&](std::size_t, const LaneReader& reader) {
                                    return reader.ForEachBatch([&](const Batch&) -> Status {
                                      ++batches;
                                      return {};
                                    });
                                  });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(batches, 5);
  EXPECT_EQ(ReadLanes({.threads = -1}, lanes, meter, {}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sealpoint::internal::tensor_stream
