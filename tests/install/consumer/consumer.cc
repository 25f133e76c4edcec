// SPDX-License-Identifier: Apache-2.0
#include <sealpoint/dtype.h>
#include <sealpoint/status.h>

#include <cstdio>

int main() {
  const sealpoint::Status status(sealpoint::Code::kCorrupt, "planted");
  if (sealpoint::DTypeName(sealpoint::DType::kBf16) != "bf16") return 1;
  std::printf("%s\n", status.ToString().c_str());
  return status.ToString() == "Corrupt: planted" ? 0 : 1;
}
