// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_COMMIT_INFO_CODEC_H_
#define SEALPOINT_LIB_SAVER_COMMIT_INFO_CODEC_H_

#include "lib/base/wire.h"
#include "sealpoint/commit.h"

namespace sealpoint::internal {

// A CommitInfo, but for its report, as bytes between the ranks of one job.
Bytes EncodeCommitInfo(const CommitInfo& info);
Result<CommitInfo> DecodeCommitInfo(ByteSpan bytes);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SAVER_COMMIT_INFO_CODEC_H_
