// SPDX-License-Identifier: Apache-2.0
//
// The module sealpoint._sealpoint: the library as plain functions and few classes. What a program
// uses is made of them in python/sealpoint.
#include "python/src/module.h"

#include "python/src/status.h"
#include "sealpoint/version.h"

NB_MODULE(_sealpoint, m) {
  using namespace sealpoint::python;
  nb::set_leak_warnings(false);  // a thread that waits for the end keeps what it uses
  m.doc() = "The compiled part of sealpoint. Programs import sealpoint.";
  m.attr("version") = Text(sealpoint::VersionString());
  m.attr("format_version") = sealpoint::kFormatVersionWritten;
  BindStatus(m);
  BindReports(m);
  BindContract(m);
  BindMemory(m);
  BindDlpack(m);
  BindSlots(m);
  BindFingerprint(m);
  BindCheckpoint(m);
  BindRead(m);
  BindEngine(m);
  BindSave(m);
  BindWriter(m);
  BindVerify(m);
  BindSeries(m);
  BindSaver(m);
  BindCommunicator(m);
  BindCollectiveReader(m);
  BindInterop(m);
  BindFiles(m);
  BindRepack(m);
  BindObjectStore(m);
  BindCommand(m);
}
