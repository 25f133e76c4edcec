// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_STORAGES_H_
#define SEALPOINT_TOOLS_CKPT_STORAGES_H_

namespace sealpoint::tools {

// From now on paths may be s3://bucket/…, if the tools were built with sealpoint::s3.
void RegisterStorages();

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_STORAGES_H_
