// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_SAFETENSORS_H_
#define SEALPOINT_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/dtype.h"
#include "sealpoint/export.h"
#include "sealpoint/limits.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

// Models in the safetensors format of Hugging Face: tensors without digests.

namespace sealpoint {

struct SafetensorsOptions {
  std::shared_ptr<Storage> storage{};  // DefaultStorage() if null
  // Bounds the header of a file, and an index. The format's own reader has the same bound.
  std::uint64_t header_size_max_bytes = 100'000'000;
  // tensor_count_max bounds the tensors of a model, blob_count_max its files.
  Limits limits{};
  // Patterns, as of Checkpoint::MatchTensors, of tensors that the index names and no file has: the
  // model lacks them (missing()). Else they are Corrupt, and a file that is not there Incomplete.
  std::vector<std::string> allow_missing{};
  // What the headers may take of memory, in bytes; nothing: 16 times what the files have, and
  // 64 MiB.
  std::optional<std::uint64_t> metadata_memory_bytes{};
};

// Where the elements of a box of a tensor lie: densely, in row-major order.
struct SafetensorsPart {
  std::size_t file = 0;      // its position in SafetensorsModel::files()
  std::uint64_t offset = 0;  // in the file, in bytes
  Box box{};
  friend bool operator==(const SafetensorsPart&, const SafetensorsPart&) = default;
};

struct SafetensorsTensor {
  std::string name{};
  DType dtype = DType::kNone;
  // In elements of `dtype`: of F4, two of which share a byte, the last extent is half of the one in
  // the file.
  Shape shape{};
  std::uint64_t raw_bytes = 0;
  // One, but for models that ranks wrote with torch's HuggingFaceStorageWriter, and none of an
  // empty tensor. Together they are the tensor, exactly.
  std::vector<SafetensorsPart> parts{};
  friend bool operator==(const SafetensorsTensor&, const SafetensorsTensor&) = default;
};

struct SafetensorsFile {
  std::string name{};  // as the index has it, or in the directory
  std::uint64_t size_bytes = 0;
  std::vector<std::pair<std::string, std::string>> metadata{};  // __metadata__, sorted by key
  friend bool operator==(const SafetensorsFile&, const SafetensorsFile&) = default;
};

// A tensor of the same name in a file that the index does not name for it.
struct SafetensorsDuplicate {
  std::string tensor{};
  std::string file{};
  std::uint64_t raw_bytes = 0;
  friend bool operator==(const SafetensorsDuplicate&, const SafetensorsDuplicate&) = default;
};

// A file of safetensors, or a directory of them, open for reading. Headers and index are checked
// when it is made: that names are unique, that dtypes are known and shapes have the sizes of their
// ranges, that these cover each file without a gap, and that the index is right. The format has no
// digests: damage to elements cannot be noticed. Immutable. Thread safety: all functions.
class SEALPOINT_EXPORT SafetensorsModel {
 public:
  // `path` is a file, or a directory: with one index (*.safetensors.index.json), which says which
  // files belong to the model, and in which of them each tensor is, or else with all files
  // *.safetensors of which it is made.
  // Errors: NotFound; NotACheckpoint (too short for a header, no file of safetensors in the
  // directory), Incomplete (a file is cut off, or one of the index or of numbered files is
  // missing), Corrupt, Unsupported (a dtype, several indices), LimitExceeded, Io.
  static Result<std::unique_ptr<SafetensorsModel>> Open(const std::string& path,
                                                        SafetensorsOptions options = {});
  virtual ~SafetensorsModel() = default;
  SafetensorsModel(const SafetensorsModel&) = delete;
  SafetensorsModel& operator=(const SafetensorsModel&) = delete;

  virtual const std::string& path() const = 0;
  virtual bool is_directory() const = 0;
  // The index's name in the directory; empty if there is none.
  virtual const std::string& index_name() const = 0;
  // Sorted by name.
  virtual const std::vector<SafetensorsFile>& files() const = 0;
  virtual const std::vector<SafetensorsTensor>& tensors() const = 0;
  // Tensors that the index names and no file has, as allow_missing allows.
  virtual const std::vector<std::string>& missing() const = 0;
  // What is in a second file, and not read: the index says which file has a tensor.
  virtual const std::vector<SafetensorsDuplicate>& duplicates() const = 0;
  // Null if there is no such tensor. O(log n).
  virtual const SafetensorsTensor* Find(std::string_view tensor) const = 0;

  // Reads a tensor, or a box of one, into host memory: dense, or by strides as those of a load.
  // Nothing is cast. After an error the content of the destination is unspecified. Errors: NotFound
  // (no such tensor), InvalidArgument (a box outside of the tensor, memory of another size or
  // dtype, or that is null), Unsupported (device memory), Incomplete (the file has become shorter),
  // Io.
  virtual Status Read(std::string_view tensor, const MutableMemoryView& destination) const = 0;
  virtual Status Read(std::string_view tensor, const Box& box,
                      const MutableMemoryView& destination) const = 0;

 protected:
  SafetensorsModel() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_SAFETENSORS_H_
