// SPDX-License-Identifier: Apache-2.0
//
// What each file of this folder adds to the module.
#ifndef SEALPOINT_PYTHON_SRC_MODULE_H_
#define SEALPOINT_PYTHON_SRC_MODULE_H_

#include <nanobind/nanobind.h>

namespace sealpoint::python {

void BindStatus(nanobind::module_& m);
void BindReports(nanobind::module_& m);
void BindContract(nanobind::module_& m);
void BindMemory(nanobind::module_& m);
void BindDlpack(nanobind::module_& m);
void BindSlots(nanobind::module_& m);
void BindFingerprint(nanobind::module_& m);
void BindCheckpoint(nanobind::module_& m);
void BindRead(nanobind::module_& m);
void BindEngine(nanobind::module_& m);
void BindSave(nanobind::module_& m);
void BindWriter(nanobind::module_& m);
void BindVerify(nanobind::module_& m);
void BindSeries(nanobind::module_& m);
void BindSaver(nanobind::module_& m);
void BindCommunicator(nanobind::module_& m);
void BindCollectiveReader(nanobind::module_& m);
void BindInterop(nanobind::module_& m);
void BindFiles(nanobind::module_& m);
void BindRepack(nanobind::module_& m);
void BindObjectStore(nanobind::module_& m);
void BindCommand(nanobind::module_& m);

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_MODULE_H_
