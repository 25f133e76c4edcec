// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>

#include <utility>

#include "mpi_exchange.h"
#include "ranks.h"
#include "sealpoint/mpi_communicator.h"

namespace char_lm {
namespace {

class MpiRanks final : public Ranks {
 public:
  MpiRanks() : exchange_(MPI_COMM_WORLD) {}
  ~MpiRanks() override { MPI_Finalize(); }

  GradientExchange& exchange() override { return exchange_; }
  sealpoint::Result<std::unique_ptr<sealpoint::Communicator>> MakeCommunicator() override {
    auto communicator = sealpoint::MpiCommunicator::Create(MPI_COMM_WORLD);
    if (!communicator.ok()) {
      return communicator.error();
    }
    return std::unique_ptr<sealpoint::Communicator>(std::move(*communicator));
  }
  void Abort(int status) override { MPI_Abort(MPI_COMM_WORLD, status); }

 private:
  MpiExchange exchange_;
};

}  // namespace

std::unique_ptr<Ranks> Ranks::Start(int& argc, char**& argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);  // threads of a save call no MPI
  return std::make_unique<MpiRanks>();
}

}  // namespace char_lm
