// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_BLOB_WRITER_IMPL_H_
#define SEALPOINT_LIB_WRITER_BLOB_WRITER_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/pipeline/engine_parts.h"
#include "lib/writer/blob_file.h"
#include "lib/writer/state_writer.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::writer {

// A writer in a directory.
class BlobWriterImpl final : public BlobWriter, public StateWriter {
 public:
  // As BlobWriter::Create.
  static Result<std::unique_ptr<BlobWriterImpl>> Create(pipeline::EngineParts& engine,
                                                        const std::string& directory,
                                                        BlobWriterOptions options);
  ~BlobWriterImpl() override;

  Status Add(const TensorSpec& tensor, const Region& region, const MemoryView& source) override {
    return AddTensor(tensor, region, source);
  }
  Status AddEmpty(const TensorSpec& tensor) override { return AddEmptyTensor(tensor); }
  Status AddObject(const ObjectSpec& object, ByteSpan bytes) override {
    return AddNamedObject(object, bytes);
  }
  Result<std::vector<BlobSummary>> Finish() override;
  Status Abandon() override;
  // Removes the files. Precondition: no commit of them succeeded, or can.
  Status RemoveBlobs();

 private:
  friend class StagedWriter;
  struct BegunBlob {
    BlobId id{};
    std::unique_ptr<BlobFile> file{};  // null: closed, or not created
    bool has_file = false;             // in the directory
    BlobSummary summary{};             // once it is closed
  };

  BlobWriterImpl(std::unique_ptr<Core> core, std::unique_ptr<Directory> directory,
                 std::uint64_t part_size_bytes)
      : StateWriter(std::move(core)),
        directory_(std::move(directory)),
        part_size_bytes_(part_size_bytes) {}

  Result<OpenedBlob> OpenBlob() override;
  Status CloseFull(const OpenedBlob& full) override;
  // Creates the files of staged blobs, in this order, also after an error: each has a slot.
  Status TakeOver(std::vector<std::unique_ptr<BlobStream>> staged);
  void AwaitWrites();
  Status Close(BegunBlob& blob);
  Status CheckNothingPins() const;

  std::unique_ptr<Directory> directory_;
  const std::uint64_t part_size_bytes_;  // of uploads, 0 if there are none
  std::vector<BegunBlob> blobs_;         // in order of creation
};

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_BLOB_WRITER_IMPL_H_
