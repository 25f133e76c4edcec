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

// Models in Hugging Face's safetensors format, which stores tensors without digests.

namespace sealpoint {

struct SafetensorsOptions {
  std::shared_ptr<Storage> storage{};  // DefaultStorage() if null
  // Maximum size of a file's header and of an index.
  std::uint64_t header_size_max_bytes = 100'000'000;
  // tensor_count_max limits the number of tensors in a model; blob_count_max limits its number of
  // files.
  Limits limits{};
  // Patterns (as in Checkpoint::MatchTensors) for the names of tensors that may be missing: the
  // index lists them, but no file has them. SafetensorsModel::missing() returns the names of these
  // tensors. If any other tensor of the index is missing, Open returns Corrupt, or Incomplete if a
  // file is missing.
  std::vector<std::string> allow_missing{};
  // Maximum memory in bytes for the headers. Default: 64 MiB plus 16 times the size of the files.
  std::optional<std::uint64_t> metadata_memory_bytes{};
};

// Location of one box of a tensor. The elements of the box are dense and in row-major order.
struct SafetensorsPart {
  std::size_t file = 0;      // position in SafetensorsModel::files()
  std::uint64_t offset = 0;  // byte offset in the file
  Box box{};
  friend bool operator==(const SafetensorsPart&, const SafetensorsPart&) = default;
};

struct SafetensorsTensor {
  std::string name{};
  DType dtype = DType::kNone;
  // Extents in elements of `dtype`. For F4, one element of `dtype` is a byte with two F4 values.
  // The last extent of an F4 tensor is therefore half of the last extent in the file's header.
  Shape shape{};
  std::uint64_t raw_bytes = 0;
  // Parts that tile the tensor. A tensor has one part, unless several ranks wrote the model with
  // torch's HuggingFaceStorageWriter. An empty tensor has no parts.
  std::vector<SafetensorsPart> parts{};
  friend bool operator==(const SafetensorsTensor&, const SafetensorsTensor&) = default;
};

struct SafetensorsFile {
  std::string name{};  // name in the index or in the directory
  std::uint64_t size_bytes = 0;
  std::vector<std::pair<std::string, std::string>> metadata{};  // __metadata__, sorted by key
  friend bool operator==(const SafetensorsFile&, const SafetensorsFile&) = default;
};

// A second copy of a tensor. `file` is not the file that the index lists for this tensor.
struct SafetensorsDuplicate {
  std::string tensor{};
  std::string file{};
  std::uint64_t raw_bytes = 0;
  friend bool operator==(const SafetensorsDuplicate&, const SafetensorsDuplicate&) = default;
};

// A safetensors file, or a directory of such files, open for reading. Open checks the headers:
// names are unique, dtypes are known, shapes match the sizes of their byte ranges, and the ranges
// cover each file without gaps. Open also checks that the index is consistent. The format has no
// digests, so damage to elements cannot be detected. Immutable. All functions are thread-safe.
class SEALPOINT_EXPORT SafetensorsModel {
 public:
  // `path` is a file or a directory. If the directory has an index (*.safetensors.index.json), the
  // index lists the model's files and the file of each tensor. If the directory has no index, the
  // model consists of all *.safetensors files in the directory. Errors: NotFound; NotACheckpoint
  // (the file is too short for a header, or the directory has no safetensors file), Incomplete (a
  // file is truncated, or a file of the index or of a numbered set is missing), Corrupt,
  // Unsupported (a dtype that this build does not support, several indices), LimitExceeded, Io.
  static Result<std::unique_ptr<SafetensorsModel>> Open(const std::string& path,
                                                        SafetensorsOptions options = {});
  virtual ~SafetensorsModel() = default;
  SafetensorsModel(const SafetensorsModel&) = delete;
  SafetensorsModel& operator=(const SafetensorsModel&) = delete;

  virtual const std::string& path() const = 0;
  virtual bool is_directory() const = 0;
  // Name of the index in the directory; empty if the model has no index.
  virtual const std::string& index_name() const = 0;
  // Files and tensors are sorted by name.
  virtual const std::vector<SafetensorsFile>& files() const = 0;
  virtual const std::vector<SafetensorsTensor>& tensors() const = 0;
  // Tensors that the index lists but no file has, as allow_missing permits.
  virtual const std::vector<std::string>& missing() const = 0;
  // Tensors that also exist in a second file. The copy in the second file is not read, because the
  // index determines the file of each tensor.
  virtual const std::vector<SafetensorsDuplicate>& duplicates() const = 0;
  // Returns null if there is no such tensor. O(log n).
  virtual const SafetensorsTensor* Find(std::string_view tensor) const = 0;

  // Reads a tensor, or a box of it, into dense or strided host memory, under the same rules as a
  // load. Elements are never converted. After an error the content of the destination is
  // unspecified. Errors: NotFound (no such tensor), InvalidArgument (a box outside the tensor;
  // memory that is null or has the wrong size or dtype), Unsupported (device memory), Incomplete
  // (the file became shorter), Io.
  virtual Status Read(std::string_view tensor, const MutableMemoryView& destination) const = 0;
  virtual Status Read(std::string_view tensor, const Box& box,
                      const MutableMemoryView& destination) const = 0;

 protected:
  SafetensorsModel() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_SAFETENSORS_H_
