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
  // Maximum size of a file's header and of an index. The format's reference reader has the same
  // limit.
  std::uint64_t header_size_max_bytes = 100'000'000;
  // tensor_count_max limits the tensors of a model, blob_count_max its files.
  Limits limits{};
  // Patterns (as in Checkpoint::MatchTensors) of tensors that may be listed in the index without
  // being in any file; missing() returns them. For other tensors this is Corrupt, and a missing
  // file is Incomplete.
  std::vector<std::string> allow_missing{};
  // Maximum memory in bytes for the headers. Default: 16 times the size of the files, plus 64 MiB.
  std::optional<std::uint64_t> metadata_memory_bytes{};
};

// Location of the elements of a box of a tensor, dense and in row-major order.
struct SafetensorsPart {
  std::size_t file = 0;      // position in SafetensorsModel::files()
  std::uint64_t offset = 0;  // in the file, in bytes
  Box box{};
  friend bool operator==(const SafetensorsPart&, const SafetensorsPart&) = default;
};

struct SafetensorsTensor {
  std::string name{};
  DType dtype = DType::kNone;
  // In elements of `dtype`. Two F4 elements share a byte, so for F4 the last extent is half of that
  // in the file.
  Shape shape{};
  std::uint64_t raw_bytes = 0;
  // They tile the tensor. One part, except for models written by several ranks with torch's
  // HuggingFaceStorageWriter; none for an empty tensor.
  std::vector<SafetensorsPart> parts{};
  friend bool operator==(const SafetensorsTensor&, const SafetensorsTensor&) = default;
};

struct SafetensorsFile {
  std::string name{};  // as in the index or the directory
  std::uint64_t size_bytes = 0;
  std::vector<std::pair<std::string, std::string>> metadata{};  // __metadata__, sorted by key
  friend bool operator==(const SafetensorsFile&, const SafetensorsFile&) = default;
};

// A tensor that also exists in a file other than the one listed in the index.
struct SafetensorsDuplicate {
  std::string tensor{};
  std::string file{};
  std::uint64_t raw_bytes = 0;
  friend bool operator==(const SafetensorsDuplicate&, const SafetensorsDuplicate&) = default;
};

// A safetensors file, or a directory of them, open for reading. Headers and index are checked on
// opening: names are unique, dtypes are known, shapes match the sizes of their ranges, ranges cover
// each file without gaps, and the index is consistent. The format has no digests, so damage to
// elements cannot be detected. Immutable. Thread safety: all functions.
class SEALPOINT_EXPORT SafetensorsModel {
 public:
  // `path` is a file or a directory. If the directory has an index (*.safetensors.index.json), it
  // lists the model's files and the file of each tensor. Otherwise the model consists of all
  // *.safetensors files. Errors: NotFound; NotACheckpoint (too short for a header, no safetensors
  // file in the directory), Incomplete (a file is truncated, or a file of the index or of a
  // numbered set is missing), Corrupt, Unsupported (a dtype, several indices), LimitExceeded, Io.
  static Result<std::unique_ptr<SafetensorsModel>> Open(const std::string& path,
                                                        SafetensorsOptions options = {});
  virtual ~SafetensorsModel() = default;
  SafetensorsModel(const SafetensorsModel&) = delete;
  SafetensorsModel& operator=(const SafetensorsModel&) = delete;

  virtual const std::string& path() const = 0;
  virtual bool is_directory() const = 0;
  // Name of the index in the directory; empty if there is none.
  virtual const std::string& index_name() const = 0;
  // Sorted by name.
  virtual const std::vector<SafetensorsFile>& files() const = 0;
  virtual const std::vector<SafetensorsTensor>& tensors() const = 0;
  // Tensors that are listed in the index but in no file, as permitted by allow_missing.
  virtual const std::vector<std::string>& missing() const = 0;
  // Tensors in a second file. They are not read: the index determines the file of a tensor.
  virtual const std::vector<SafetensorsDuplicate>& duplicates() const = 0;
  // Null if there is no such tensor. O(log n).
  virtual const SafetensorsTensor* Find(std::string_view tensor) const = 0;

  // Reads a tensor, or a box of it, into dense or strided host memory, as in a load. Nothing is
  // cast. After an error the content of the destination is unspecified. Errors: NotFound (no such
  // tensor), InvalidArgument (a box outside of the tensor; memory that is null or of the wrong size
  // or dtype), Unsupported (device memory), Incomplete (the file became shorter), Io.
  virtual Status Read(std::string_view tensor, const MutableMemoryView& destination) const = 0;
  virtual Status Read(std::string_view tensor, const Box& box,
                      const MutableMemoryView& destination) const = 0;

 protected:
  SafetensorsModel() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_SAFETENSORS_H_
