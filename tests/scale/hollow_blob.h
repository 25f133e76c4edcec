// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SCALE_HOLLOW_BLOB_H_
#define SEALPOINT_TESTS_SCALE_HOLLOW_BLOB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/saver/save_plan.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/declaration.h"
#include "sealpoint/storage.h"

namespace sealpoint::testing {

// A blob as the writer lays it out, without its payload: enough for a summary and for the chunk
// table, whose digests of chunks are zero.
struct HollowBlob {
  struct Shard {
    std::uint64_t raw_size = 0;
    std::uint64_t chunk_size = 0;
  };
  std::vector<Shard> shards{};
  BlobSummary summary{};
};

// The blobs that a rank writes by this plan: one per group of tensors.
std::vector<HollowBlob> MakeHollowBlobs(const Declaration& declaration,
                                        const internal::saver::SavePlan& plan, int rank,
                                        const AttemptId& attempt);

// Files in memory, and blobs of which only the table can be read. It is made anew for each read.
class HollowStorage final : public Storage {
 public:
  HollowStorage();
  ~HollowStorage() override;

  // Blobs are seen in every directory.
  void Add(const HollowBlob& blob);

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override;
  Status CreateDirectories(std::string_view path) override;

  struct Table {
    std::uint64_t file_size = 0;
    std::uint64_t offset = 0;
    std::vector<HollowBlob::Shard> shards{};
  };
  using Tables = std::map<std::string, Table, std::less<>>;  // by file name

 private:
  const std::shared_ptr<Storage> files_;
  const std::shared_ptr<Tables> tables_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SCALE_HOLLOW_BLOB_H_
