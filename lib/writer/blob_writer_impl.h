// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_BLOB_WRITER_IMPL_H_
#define SEALPOINT_LIB_WRITER_BLOB_WRITER_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/pipeline/engine_parts.h"
#include "lib/writer/blob_file.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// A BlobWriter, which may also begin before its directory is known: what is added then stays in
// staging buffers until Bind.
class BlobWriterImpl final : public BlobWriter {
 public:
  BlobWriterImpl(EngineParts& engine, std::unique_ptr<Directory> directory,
                 BlobWriterOptions options)
      : engine_(engine),
        directory_(std::move(directory)),
        options_(std::move(options)),
        copies_(engine.device, CopyOptionsOf(engine)) {}
  // Without a directory. Takes over `reserved_buffer_count` buffers that EngineParts::TryReserve
  // set apart, at least what StagingEstimate says of all that will be added before Bind.
  BlobWriterImpl(EngineParts& engine, std::uint64_t reserved_buffer_count,
                 BlobWriterOptions options)
      : engine_(engine),
        reserved_buffer_count_(reserved_buffer_count),
        options_(std::move(options)),
        copies_(engine.device, CopyOptionsOf(engine)) {}
  ~BlobWriterImpl() override;

  // As BlobWriter::Create.
  static Result<std::unique_ptr<BlobWriterImpl>> Create(EngineParts& engine,
                                                        const std::string& directory,
                                                        BlobWriterOptions options);

  // Device memory is only queued by Add, and large host memory may be written from where it lies;
  // AwaitCopies then waits for all of it at once, and until then the sources must stay as they are.
  void DeferCopies() { defers_copies_ = true; }
  Status AwaitCopies();
  struct Expected {
    std::uint64_t bytes = 0;
    std::uint64_t borrowable_bytes = 0;  // of these, see IntakeSet::MayBorrow
    bool has_device_memory = false;
  };
  // What will be added. How many
  // staging buffers are in use at once depends on timing: AwaitCopies maps what may be besides, so
  // that no later save allocates.
  void Expect(const Expected& expected) { expected_ = expected; }
  // See SaverOptions::check_device_copies.
  void CheckCopies() { checks_copies_ = true; }

  // Names the directory and the attempt of a writer without: the files are created, and writing
  // begins. Errors: NotFound, Io, NoSpace.
  Status Bind(std::unique_ptr<Directory> directory, const AttemptId& attempt);
  // After Bind: waits until each full buffer is written, or its write failed. Calls on_progress.
  void AwaitWrites();

  Status Add(const TensorSpec& tensor, const Region& region, const MemoryView& source) override;
  // The same for all tensors that `for_each` adds, of a declaration and its sources, where each was
  // checked when it was declared and when its memory was bound. Precondition: DeferCopies.
  using AddOne = std::function<Status(const TensorSpec& tensor, const Region& region,
                                      const MemoryView& source)>;
  Status AddDeclared(const std::function<Status(const AddOne& add)>& for_each);
  Status AddEmpty(const TensorSpec& tensor) override;
  Status AddObject(std::string_view name, std::string_view media_type, ByteSpan bytes,
                   Codec codec) override;
  Result<std::vector<BlobSummary>> Finish() override;
  Status Abandon() override;

 private:
  // A blob group has at most one open blob at a time.
  struct OpenBlob {
    std::size_t number = 0;  // in blobs_
    std::unique_ptr<BlobFile> file;
  };
  struct BegunBlob {
    BlobId id{};
    bool has_file = false;
    BlobSummary summary{};  // once it is closed
  };

  static DeviceCopies::Options CopyOptionsOf(EngineParts& engine) {
    return {.idle_queues = &engine.queues, .pinned_pool = engine.pool.get()};
  }

  // Runs one step of the writer, unless one failed before; keeps the first error.
  template <typename Step>
  Status Run(const Step& step);

  Status AddChecked(const TensorSpec& tensor, const Region& region, const MemoryView& source);
  BlobFile::Context context() { return {engine_, copies_, *tensors_, checks_copies_}; }
  // The tensor's number in the table, to which it is added when it comes first; InvalidArgument if
  // it is different later.
  Result<std::uint32_t> NumberOf(const TensorSpec& tensor);
  // The open blob of a group with `room` bytes to spare, after closing a fuller one.
  Result<BlobFile*> BlobWithRoom(const std::string& group, std::uint64_t room);
  Result<BlobFile*> OpenNewBlob(const std::string& group);
  // See Expect.
  void ReserveStaging();
  Status CloseBlob(OpenBlob& blob);
  // Waits for some in-flight bytes of any blob and hashes them; false if there are none.
  Result<bool> Drain();
  // See Intake; of all blobs.
  Status Release();
  Status BindBlob(OpenBlob& blob, const AttemptId& attempt);

  EngineParts& engine_;
  std::unique_ptr<Directory> directory_;  // absent before Bind
  std::uint64_t reserved_buffer_count_ = 0;
  BlobWriterOptions options_;
  std::map<std::string, OpenBlob> open_;  // by group
  std::vector<OpenBlob> full_;            // to be closed once there is a directory
  std::vector<BegunBlob> blobs_;          // in order of creation
  std::unique_ptr<TensorTable> tensors_ = std::make_unique<TensorTable>();  // as first added
  std::set<std::string, std::less<>> objects_;
  std::uint64_t bytes_staged_ = 0;
  Expected expected_;
  Status failure_;
  bool is_finished_ = false;
  bool defers_copies_ = false;
  bool checks_copies_ = false;
  DeviceCopies copies_;  // the last member: destroyed, and idle, before the buffers it writes into
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_WRITER_BLOB_WRITER_IMPL_H_
