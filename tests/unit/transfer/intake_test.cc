// SPDX-License-Identifier: Apache-2.0
//
// Every way from memory into a file: what arrives, what an error leaves, what an end in the middle
// leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/base/internal_access.h"
#include "lib/codec/chunk_codec.h"
#include "lib/transfer/intake_set.h"
#include "sealpoint/engine.h"
#include "tests/support/device/host_device.h"
#include "tests/support/process/in_child.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::internal::transfer {
namespace {

using sealpoint::testing::DeviceMemory;
using sealpoint::testing::FailingStorage;
using sealpoint::testing::HostDevice;
using sealpoint::testing::StorageOp;
using ::testing::HasSubstr;

constexpr std::uint64_t kBuffer = 64 * kKiB;
constexpr int kBufferCount = 128;
constexpr std::uint64_t kSmall = 40001;                // no multiple of anything
constexpr std::uint64_t kLarge = 2 * kMiB + 3 * kKiB;  // more buffers than wait to be written

struct Way {
  std::string name{};
  std::uint64_t size = kSmall;
  std::uint64_t chunk_size = 16 * kKiB;
  Codec codec = Codec::kNone;
  bool is_noise = true;
  bool is_on_device = false;
  bool is_reversed = false;  // strided: from the last element to the first
  std::uint32_t element_size = 1;
  StreamTarget target = StreamTarget::kDirectFile;
  bool checks_copies = false;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

// What the file's table would hold.
class FakeTable final : public ChunkSink {
 public:
  std::size_t AddChunk(const StoredChunk& chunk) override {
    chunks.push_back(chunk);
    return chunks.size() - 1;
  }
  void SetDigest(std::size_t record, const Digest& raw) override {
    chunks.at(record).raw_digest = raw;
  }
  void AddFingerprint(std::uint32_t tensor, const Fingerprint& of_elements) override {
    fingerprints.at(tensor) += of_elements;
  }
  std::array<Fingerprint, 3> fingerprints{};  // of the sources
  std::vector<StoredChunk> chunks;
};

// A shard in host or device memory.
class Source {
 public:
  Source(const Way& way, HostDevice& device, std::uint32_t seed) : way_(way) {
    std::mt19937_64 random(seed);
    bytes_.resize(way.size, std::byte(seed));
    for (std::size_t i = 0; way.is_noise && i + 8 <= way.size; i += 8) {
      const std::uint64_t number = random();
      std::memcpy(bytes_.data() + i, &number, 8);
    }
    Bytes as_it_lies = bytes_;
    if (way.is_reversed) {
      for (std::size_t at = 0; at < way.size; at += way.element_size) {
        std::copy_n(&bytes_[at], way.element_size, &as_it_lies[way.size - at - way.element_size]);
      }
    }
    if (way.is_on_device) {
      on_device_ = device.Allocate(0, way.size);
      std::ranges::copy(as_it_lies, on_device_->contents().begin());
    } else {
      on_host_ = std::move(as_it_lies);
    }
    std::vector<std::int64_t> strides;
    if (way.is_reversed) strides = {-std::int64_t{way.element_size}};
    const std::size_t origin = way.is_reversed ? way.size - way.element_size : 0;
    view_ = way.is_on_device
                ? MemoryView::Cuda(on_device_->address(), way.size, 0, nullptr, strides, origin)
                : MemoryView::Host(on_host_.data(), way.size, strides, origin);
  }

  SourceReader Reader() const {
    return {Region::Whole({way_.size / way_.element_size}), way_.element_size, view_};
  }
  ShardEncoding encoding() const {
    return {.raw_size = way_.size, .chunk_size = way_.chunk_size, .codec = way_.codec};
  }
  // As the tensor of this number, with its fingerprint. Its elements have one byte, its rows ten.
  ShardEncoding encoding_of(std::uint32_t tensor) const {
    ShardEncoding encoding = this->encoding();
    encoding.part = std::make_shared<fingerprint::Part>(shape(), 1, region());
    encoding.tensor = tensor;
    return encoding;
  }
  Fingerprint expected_fingerprint() const {
    return ComputeFingerprint(shape(), 1, region(), MemoryView::Host(bytes_)).value();
  }
  const Bytes& bytes() const { return bytes_; }
  // Nobody may read it any more.
  void Overwrite() {
    if (way_.is_on_device) std::ranges::fill(on_device_->contents(), std::byte{0});
    on_host_ = Bytes();
  }

 private:
  Shape shape() const { return {way_.size / 10 + 2, 10}; }
  Region region() const { return {Region::Whole(shape()).box, Run{7, 7 + way_.size}}; }

  const Way way_;
  Bytes bytes_;
  Bytes on_host_;
  std::unique_ptr<DeviceMemory> on_device_;
  MemoryView view_;
};

class IntakeTest : public ::testing::TestWithParam<Way> {
 protected:
  IntakeTest() {
    parts_.device = device_;
    sources_.emplace_back(GetParam(), *device_, 1);
    sources_.emplace_back(Way{.size = 100}, *device_, 2);  // between the others
    sources_.emplace_back(GetParam(), *device_, 3);
  }
  ~IntakeTest() override { Stop(); }

  // As a writer does it: each step, as long as none fails.
  Status Begin() {
    directory_ = storage_->OpenDirectory("d").value();
    file_ = directory_->CreateExclusive("f", {}).value();
    copies_.emplace(parts_.device);
    stream_.emplace(*parts_.pool, *parts_.io);
    if (GetParam().target != StreamTarget::kNone) stream_->Bind(*file_);
    intakes_.emplace(IntakeContext{.engine = parts_,
                                   .copies = *copies_,
                                   .stream = *stream_,
                                   .chunks = table_,
                                   .checks_copies = GetParam().checks_copies},
                     GetParam().target);
    stream_->SetDrain([this] { return intakes_->CompleteOldest(); });
    for (Source& source : sources_) {
      SourceReader reader = source.Reader();
      const auto number = static_cast<std::uint32_t>(&source - sources_.data());
      const ShardEncoding encoding = source.encoding_of(number);
      SEALPOINT_RETURN_IF_ERROR(intakes_->Choose(reader, encoding).Begin(reader, encoding));
    }
    return {};
  }
  Status Release() {
    SEALPOINT_RETURN_IF_ERROR(copies_->WaitForAll());
    return intakes_->Release();
  }
  Status Write() {
    if (GetParam().target == StreamTarget::kNone) {
      intakes_->BeforeWrites();
      stream_->Bind(*file_);
    }
    SEALPOINT_RETURN_IF_ERROR(intakes_->Complete());
    SEALPOINT_RETURN_IF_ERROR(stream_->AlignTo(4096));
    return stream_->Flush();
  }
  Status Run() {
    SEALPOINT_RETURN_IF_ERROR(Begin());
    SEALPOINT_RETURN_IF_ERROR(Release());
    for (Source& source : sources_) source.Overwrite();
    return Write();
  }
  // What a writer does when it is destroyed, at any time.
  void Stop() {
    if (copies_ && !copies_->WaitForAll().ok()) copies_->Stop();
    if (intakes_) static_cast<void>(intakes_->Release());
    for (Source& source : sources_) source.Overwrite();
    intakes_.reset();
    stream_.reset();
    copies_.reset();
    file_.reset();
  }
  // True if every staging buffer is back in the pool.
  bool HasAllBuffers() {
    std::vector<device::StagingBuffer> buffers;
    while (true) {
      buffers.push_back(parts_.pool->TryAcquire().value());
      if (buffers.back().empty()) return buffers.size() - 1 == parts_.pool->buffer_count();
    }
  }

  const std::shared_ptr<HostDevice> device_ = std::make_shared<HostDevice>(
      sealpoint::testing::HostDeviceOptions{.delay_max = std::chrono::microseconds(30)});
  const std::shared_ptr<FailingStorage> storage_ = [] {
    auto storage = std::make_shared<FailingStorage>(MemoryStorage());
    EXPECT_TRUE(storage->CreateDirectories("d").ok());
    return storage;
  }();
  const std::unique_ptr<Engine> engine_ =
      Engine::Create({.memory_budget_bytes = kBufferCount * kBuffer,
                      .staging_buffer_size_bytes = kBuffer,
                      .storage = storage_})
          .value();
  pipeline::EngineParts& parts_ = InternalAccess::PartsOf(*engine_);
  std::vector<Source> sources_;
  FakeTable table_;
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<WritableFile> file_;
  std::optional<device::DeviceCopies> copies_;
  std::optional<pipeline::FileStream> stream_;
  std::optional<IntakeSet> intakes_;
};

TEST_P(IntakeTest, BringsWhatTheSourcesHeldWhenTheyWereReleased) {
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_TRUE(file_->Close().ok());
  const auto file = directory_->OpenForRead("f", IoMode::kBuffered).value();
  std::uint64_t offset = 0;
  auto chunk = table_.chunks.begin();
  codec::ChunkCodec codec;
  for (const Source& source : sources_) {
    const ShardEncoding encoding = source.encoding();
    for (std::uint64_t i = 0; i < encoding.chunk_count(); ++i, ++chunk) {
      ASSERT_NE(chunk, table_.chunks.end());
      const ByteSpan expected =
          ByteSpan(source.bytes()).subspan(i * encoding.chunk_size, encoding.raw_size_of(i));
      Bytes stored(chunk->stored_size);
      ASSERT_TRUE(file->ReadAt(offset, stored).ok());
      offset += stored.size();
      Bytes raw(expected.size());
      ASSERT_TRUE(codec.Decode(chunk->codec, 1, stored, raw).ok());
      ASSERT_EQ(raw, Bytes(expected.begin(), expected.end()));
      EXPECT_EQ(chunk->raw_digest, ComputeDigest(expected));
      const bool is_encoded = chunk->codec != Codec::kNone;
      EXPECT_EQ(is_encoded, encoding.codec != Codec::kNone && !GetParam().is_noise);
      EXPECT_EQ(chunk->stored_digest, is_encoded ? ComputeDigest(stored) : Digest());
    }
  }
  EXPECT_EQ(chunk, table_.chunks.end());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    EXPECT_EQ(table_.fingerprints[i], sources_[i].expected_fingerprint()) << i;
  }
  Stop();
  EXPECT_TRUE(HasAllBuffers());
}

// Each copy keeps the link idle for microseconds: chunks that share a buffer share a copy.
TEST_P(IntakeTest, DevicesCopyOnceForEachBuffer) {
  const Way& way = GetParam();
  if (!way.is_on_device || way.is_reversed || way.codec != Codec::kNone)
    GTEST_SKIP() << "no such copies";
  ASSERT_TRUE(Run().ok());
  std::uint64_t expected = 0;
  std::uint64_t offset = 0;
  for (const Source& source : sources_) {
    const std::uint64_t end = offset + source.encoding().raw_size;
    if (source.bytes().size() == way.size)
      expected += DivideRoundUp(end, kBuffer) - offset / kBuffer;
    offset = end;
  }
  EXPECT_EQ(device_->counters().copies, expected);
}

TEST_P(IntakeTest, AFailedWriteIsTheErrorAndNothingIsReadAfterIt) {
  for (int nth = 1; nth <= 3; ++nth) {
    storage_->Fail({.op = StorageOp::kWrite, .nth = nth, .persists = true});
    const Status status = Run();
    if (nth == 1 || (GetParam().size == kLarge && GetParam().is_noise)) {
      EXPECT_EQ(status.code(), Code::kIo) << nth;
      EXPECT_THAT(status.message(), HasSubstr("injected"));
    }
    Stop();
    EXPECT_TRUE(HasAllBuffers());
    storage_->Heal();
    EXPECT_TRUE(directory_->Remove("f").ok());
    sources_.clear();
    sources_.emplace_back(GetParam(), *device_, 1);
  }
}

// One write, which is late: Begin has no part in it.
TEST_P(IntakeTest, AWriteThatFailsLateIsTheErrorOfRelease) {
  if (GetParam().chunk_size != kMiB || GetParam().target != StreamTarget::kBufferedFile) return;
  storage_->SetHook([](StorageOp op, std::string_view) {
    if (op == StorageOp::kWrite) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  storage_->Fail({.op = StorageOp::kWrite});
  sources_.clear();
  sources_.emplace_back(GetParam(), *device_, 1);
  ASSERT_TRUE(Begin().ok());
  EXPECT_EQ(Release().code(), Code::kIo);
}

// The stream has given its buffers back, which a child of fork cannot touch.
TEST_P(IntakeTest, NothingIsCopiedIntoBuffersThatAreGone) {
  if (GetParam().name != "Snapshot") return;
  ASSERT_TRUE(Begin().ok());
  EXPECT_TRUE(sealpoint::testing::HoldsInChild([this] {
    SourceReader reader = sources_[0].Reader();
    const Status begun =
        intakes_->Choose(reader, sources_[0].encoding()).Begin(reader, sources_[0].encoding());
    return !begun.ok() && !intakes_->Release().ok();
  }));
}

TEST_P(IntakeTest, AFailedCopyFromADeviceIsTheError) {
  if (!GetParam().is_on_device) return;
  for (const bool is_late : {false, true}) {
    is_late ? device_->FailCopyWhenRun(2) : device_->FailCopyWhenQueued(2);
    EXPECT_EQ(Run().code(), Code::kDevice);
    Stop();
    EXPECT_TRUE(HasAllBuffers());
    EXPECT_TRUE(directory_->Remove("f").ok());
    sources_.clear();
    sources_.emplace_back(GetParam(), *device_, 1);
  }
}

TEST_P(IntakeTest, ABitThatTheLinkFlippedIsAnErrorIfCopiesAreChecked) {
  if (!GetParam().checks_copies) return;
  device_->FlipBitInCopy(2);
  const Status status = Run();
  EXPECT_EQ(status.code(), Code::kDevice);
  EXPECT_THAT(status.message(), HasSubstr("device copy corrupted"));
}

TEST_P(IntakeTest, MayEndAnywhere) {
  for (int steps = 1; steps <= 2; ++steps) {
    ASSERT_TRUE(Begin().ok());
    if (steps > 1) {
      ASSERT_TRUE(Release().ok());
    }
    Stop();
    EXPECT_TRUE(HasAllBuffers()) << steps;
    EXPECT_TRUE(directory_->Remove("f").ok());
    sources_.clear();
    sources_.emplace_back(GetParam(), *device_, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , IntakeTest,
    ::testing::Values(
        Way{.name = "Copied"}, Way{.name = "CopiedLarge", .size = kLarge},
        Way{.name = "CopiedWithoutAFile", .target = StreamTarget::kNone},
        Way{.name = "Gathered", .size = kLarge, .is_reversed = true},
        // Buffers end within elements.
        Way{.name = "GatheredWide", .size = kLarge, .is_reversed = true, .element_size = 256},
        Way{.name = "GatheredIntoBuffers",
            .size = kLarge,
            .is_reversed = true,
            .target = StreamTarget::kBufferedFile},
        Way{.name = "Borrowed", .size = kLarge, .target = StreamTarget::kBufferedFile},
        Way{.name = "BorrowedInRounds",
            .size = kLarge,
            .chunk_size = 256,
            .target = StreamTarget::kBufferedFile},
        Way{.name = "BorrowedInOneChunk",
            .size = kMiB,
            .chunk_size = kMiB,
            .target = StreamTarget::kBufferedFile},
        Way{.name = "Snapshot", .size = kLarge, .target = StreamTarget::kNone},
        Way{.name = "SnapshotOfLargeChunks",
            .size = kLarge,
            .chunk_size = kMiB,
            .target = StreamTarget::kNone},
        Way{.name = "FromDevice", .size = kLarge, .is_on_device = true},
        Way{.name = "FromDeviceWithoutAFile",
            .size = kLarge,
            .is_on_device = true,
            .target = StreamTarget::kNone},
        Way{.name = "FromDeviceStrided",
            .size = 2 * kSmall,
            .is_on_device = true,
            .is_reversed = true},
        Way{.name = "FromDeviceChecked",
            .size = kLarge,
            .is_on_device = true,
            .checks_copies = true},
        Way{.name = "Encoded", .size = kLarge, .codec = Codec::kZstd, .is_noise = false},
        Way{.name = "EncodedNoise", .size = kLarge, .codec = Codec::kZstd},
        Way{.name = "EncodedStrided",
            .codec = Codec::kZstd,
            .is_noise = false,
            .is_reversed = true},
        Way{.name = "EncodedFromDevice",
            .size = kLarge,
            .codec = Codec::kZstd,
            .is_noise = false,
            .is_on_device = true,
            .checks_copies = true}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace sealpoint::internal::transfer
