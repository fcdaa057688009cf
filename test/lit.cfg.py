# lit configuration for the compiler's tests: *.mlir under test/, run by llmc-opt and FileCheck.
#   ninja check-llmc-lit                                  all
#   /usr/lib/llvm-22/bin/lit -v BUILD/test --filter PART   some
import os

import lit.formats

config.name = "llmc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["data", "lib", "runtime", "fuzz", "EndToEnd"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.llmc_binary_dir, "test", "lit-output")

path = [os.path.join(config.llmc_binary_dir, "bin"), config.llvm_tools_dir, config.environment.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
config.substitutions.append(("%source_dir", config.llmc_source_dir))
