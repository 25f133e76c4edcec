# SPDX-License-Identifier: Apache-2.0
"""The libraries and the program ckpt for Spack 1.0 or later, from a clone, in which this is called:

    spack repo add packaging/spack/spack_repo/sealpoint
    spack dev-build sealpoint@1.0.0

The Python package is pip's: Spack has no nanobind 3.1.
"""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Sealpoint(CMakePackage):
    """Checkpoints of distributed training: every rank writes its own part in parallel, one small marker makes the whole
    checkpoint exist or not exist, and a reader, on any number of ranks, gets exactly the bytes that were saved."""

    license("Apache-2.0")

    version("1.0.0")

    variant("shared", default=True, description="Build libsealpoint as a shared library")
    variant("mpi", default=True, description="Provide sealpoint::mpi, the adapter for the MPI of the program")
    variant("s3", default=True, description="Build sealpoint::s3, the client of S3, and let ckpt know s3://")
    variant("tools", default=True, description="Build the program ckpt")
    variant("c_api", default=True, description="Build sealpoint::c, the shared library of the C API")

    conflicts("platform=darwin", msg="Sealpoint runs on Linux")
    conflicts("platform=windows", msg="Sealpoint runs on Linux")
    conflicts("%gcc@:11", msg="Sealpoint is C++20: g++ 12 and clang 19 are tested")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("flatbuffers", type="build")
    depends_on("xxhash@0.8:", type="build")
    depends_on("zstd")
    # The adapter is compiled with the programs that use it; only they link an MPI.
    depends_on("mpi", when="+mpi")
    with when("+s3"):
        depends_on("curl@7.85:")
        depends_on("openssl")
        depends_on("expat")
    for name in ("cli11", "fmt", "nlohmann-json"):
        depends_on(name, type="build", when="+tools")
    depends_on("nlohmann-json", type="build", when="+s3")

    def cmake_args(self):
        unwanted = ("BUILD_TESTING", "SEALPOINT_BUILD_EXAMPLES", "SEALPOINT_BUILD_BENCHMARKS", "SEALPOINT_BUILD_PYTHON")
        return [
            *(self.define(name, False) for name in unwanted),
            self.define("SEALPOINT_WITH_CUDA", "OFF"),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("SEALPOINT_WITH_MPI", "mpi"),
            self.define_from_variant("SEALPOINT_WITH_S3", "s3"),
            self.define_from_variant("SEALPOINT_BUILD_TOOLS", "tools"),
            self.define_from_variant("SEALPOINT_BUILD_C", "c_api"),
        ]
