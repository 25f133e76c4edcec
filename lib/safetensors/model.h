// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAFETENSORS_MODEL_H_
#define SEALPOINT_LIB_SAFETENSORS_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/safetensors/header.h"
#include "lib/safetensors/index_file.h"
#include "lib/storage/open_files.h"
#include "sealpoint/object_store.h"
#include "sealpoint/safetensors.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::safetensors {

// A file of a model, and its header.
struct OpenedFile {
  SafetensorsFile info;
  std::vector<HeaderTensor> tensors;
  std::uint64_t payload_begin = 0;
  std::string directory;                     // that has it
  std::string entry;                         // its name there
  std::shared_ptr<const ReadableFile> file;  // null if there are too many to keep them open
};

// The key of the metadata of a file that torch's HuggingFaceStorageWriter wrote.
inline constexpr std::string_view kShardingKey = "DCP_SHARDING_INFO";

// Null if there is no such key.
const std::string* FindMetadata(const StringPairs& metadata, std::string_view key);

// The tensors of the files, sorted by name. With `is_sharded` a tensor may have parts in several of
// them (SafetensorsPart). Errors: Corrupt (two files have a tensor, or its parts do not fit
// together), LimitExceeded.
Result<std::vector<SafetensorsTensor>> GatherTensors(const std::vector<OpenedFile>& files,
                                                     bool is_sharded, const Limits& limits);

class Model final : public SafetensorsModel {
 public:
  Model(std::string path, SafetensorsOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  // To be called once, before all others.
  Status OpenAll();

  const std::string& path() const override { return path_; }
  bool is_directory() const override { return is_directory_; }
  const std::string& index_name() const override { return index_name_; }
  const std::vector<SafetensorsFile>& files() const override { return infos_; }
  const std::vector<SafetensorsTensor>& tensors() const override { return tensors_; }
  const std::vector<std::string>& missing() const override { return missing_; }
  const std::vector<SafetensorsDuplicate>& duplicates() const override { return duplicates_; }
  const SafetensorsTensor* Find(std::string_view tensor) const override;
  Status Read(std::string_view tensor, const MutableMemoryView& destination) const override;
  Status Read(std::string_view tensor, const Box& box,
              const MutableMemoryView& destination) const override;

 private:
  Status OpenDirectory(const Directory& directory);
  Result<ShardIndex> ReadIndex(const Directory& directory) const;
  Status OpenFile(const Directory& directory, std::string name, std::string entry);
  Status CheckCost(std::string_view header, std::uint64_t file_size);
  Status OpenNamed(const Directory& directory, const std::string& name);
  Status CheckCount(std::size_t file_count) const;
  Status OpenIndexed(const Directory& directory);
  Status ApplyIndex(const ShardIndex& index);
  Status ReadChecked(const SafetensorsTensor& tensor, const Box& box,
                     const MutableMemoryView& destination) const;

  const std::string path_;
  SafetensorsOptions options_;
  const std::size_t open_files_max_ = storage::OpenFilesFor(128);
  std::shared_ptr<BlockCache> blocks_;
  bool is_directory_ = false;
  std::string index_name_;
  std::uint64_t stored_bytes_ = 0;     // of the files that were opened
  std::uint64_t described_bytes_ = 0;  // of memory, for their headers
  std::vector<OpenedFile> files_;
  std::vector<SafetensorsFile> infos_;
  std::vector<SafetensorsTensor> tensors_;
  std::vector<std::string> missing_;
  std::vector<SafetensorsDuplicate> duplicates_;
};

// Copies the elements of `requested`, a subset of `part`, from their position in the file to their
// position in memory that holds `box`.
Status CopyFromFile(const ReadableFile& file, const SafetensorsPart& part, const Box& requested,
                    const Box& box, std::uint32_t element_size,
                    const MutableMemoryView& destination);

}  // namespace sealpoint::internal::safetensors

#endif  // SEALPOINT_LIB_SAFETENSORS_MODEL_H_
