// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_STATE_WRITER_H_
#define SEALPOINT_LIB_WRITER_STATE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/macros.h"
#include "lib/device/device_copies.h"
#include "lib/metadata/tensor_table.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/writer/blob_stream.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::writer {

// Properties of a state that are known before it is added.
struct ExpectedState {
  std::uint64_t bytes = 0;
  std::uint64_t borrowable_bytes = 0;  // of these, see kBorrowedSizeMin
  bool has_device_memory = false;
  bool checks_copies = false;  // see SaverOptions::check_device_copies
  bool has_attributes = false;
};

// Distributes tensors and objects to blobs by group. StagedWriter does so before the directory is
// known, BlobWriterImpl in a directory; they define how a blob is created and closed. The first
// error is kept. Thread safety: one caller at a time.
class StateWriter {
 public:
  virtual ~StateWriter() = default;
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  // Adds one tensor or object; the memory may change when it returns. See BlobWriter.
  Status AddTensor(const TensorSpec& tensor, const Region& region, const MemoryView& source);
  Status AddEmptyTensor(const TensorSpec& tensor);
  Status AddNamedObject(const ObjectSpec& object, ByteSpan bytes);

  // Adds the shards and objects of a declaration and its sources, as passed by the functions;
  // shards were checked when they were declared and bound. Device memory is only queued, and large
  // host memory may be read in place, until everything is waited for together: the sources may
  // change when this returns. `base`: see ShardEncoding.
  using AddShard = std::function<Status(const TensorSpec& tensor, const Region& region,
                                        const MemoryView& source, const std::byte* base)>;
  struct State {
    ExpectedState expected{};
    std::function<Status(const AddShard& add)> for_each_shard{};
    // Adds the rest by AddEmptyTensor and AddNamedObject.
    std::function<Status()> add_rest{};
  };
  Status AddState(const State& state);

 protected:
  struct OpenedBlob {
    std::size_t number = 0;  // in the order of creation
    BlobStream* stream = nullptr;
    std::string group{};
  };
  // State that survives the change from a staged writer to one with a directory, and never moves.
  struct Core {
    Core(pipeline::EngineParts& engine_parts, BlobWriterOptions writer_options);

    pipeline::EngineParts& engine;
    BlobWriterOptions options;
    std::map<std::string, OpenedBlob> open{};  // by group, one each
    std::vector<OpenedBlob> full{};            // not ended yet
    std::unique_ptr<metadata::TensorTable> tensors =
        std::make_unique<metadata::TensorTable>();  // as first added
    std::set<std::string, std::less<>> objects{};
    std::uint64_t bytes_staged = 0;
    Status failure{};
    bool is_finished = false;
    bool checks_copies = false;
    bool has_attributes = false;  // later blobs announce attributes
    device::DeviceCopies copies;
  };

  explicit StateWriter(std::unique_ptr<Core> core) : core_(std::move(core)) {}

  // A blob to add to, which the writer owns.
  virtual Result<OpenedBlob> OpenBlob() = 0;
  // Nothing more is added to it.
  virtual Status CloseFull(const OpenedBlob& full) = 0;

  BlobStream::Context BlobContext() const;
  // Runs one step, unless one failed before; keeps the first error.
  template <typename Step>
  Status Run(const Step& step) {
    SEALPOINT_RETURN_IF_ERROR(CheckRuns());
    core_->failure = step();
    if (!core_->failure.ok()) StopReading();
    return core_->failure;
  }
  // Not ended, in the order in which they are.
  std::vector<OpenedBlob> Blobs() const;
  // See Intake; of all blobs.
  Status Release();
  // After this call nothing is read or copied, even after errors. The blobs may then be destroyed.
  void StopCopies();

  std::unique_ptr<Core> core_;

 private:
  Status CheckRuns() const;
  // After an error the caller may free its memory: nothing may read it after this call.
  void StopReading();
  Status DeclareEmpty(const TensorSpec& tensor);
  // In the boxes of TensorSpec::stored_cuts.
  Status AddBoxes(const TensorSpec& tensor, const Region& region, const MemoryView& source);
  Status AddChecked(const TensorSpec& tensor, const Region& region, const MemoryView& source,
                    const std::byte* base = nullptr);
  // The tensor's number in the table. Adds it on first use; InvalidArgument if it differs later.
  Result<std::uint32_t> NumberOf(const TensorSpec& tensor);
  // The open blob of a group with `room` bytes to spare, after putting a fuller one aside, or one
  // whose header, which is written first, does not announce the attributes of what is to be added.
  Result<BlobStream*> BlobWithRoom(const std::string& group, std::uint64_t room,
                                   bool has_attributes = false);
  void ReserveStaging(const ExpectedState& expected);
  void Progress(std::uint64_t bytes);

  bool is_adding_state_ = false;
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_STATE_WRITER_H_
