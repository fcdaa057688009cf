//===- Hardware.cpp -------------------------------------------------------===//
//
// Bandwidth: channels * 8 bytes * transfer rate. Operations: cores * clock * (units * lanes * 2), with AVX2 two FMA
// units of 8 lanes and, for int8, vpmaddubsw + vpmaddwd (32 a cycle and unit, half used), for int16 vpmaddwd of 16; AVX-512
// VNNI two vpdpbusd of 64 or vpdpwssd of 32.
// Cards: nominal bandwidth, dense bf16 and f32 of NVIDIA's data sheets.
//
//===----------------------------------------------------------------------===//
#include "llmc/Explain/Hardware.h"

#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"
#include "llmc/abi.h"

using namespace llmc;

double Hardware::peak(uint32_t arithmetic) const {
  if (arithmetic == LLMC_COST_E4M3 && bf16 > 0) // half the bits, twice the products of a matrix unit
    return 2 * bf16;
  const double own = arithmetic == LLMC_COST_BF16 ? bf16 : arithmetic == LLMC_COST_I16 ? int16 : arithmetic == LLMC_COST_I8 ? int8 : f32;
  return own > 0 ? own : f32;
}

const std::vector<Hardware> &llmc::hardwareTable() {
  static const std::vector<Hardware> table = {
      {"vm-2", "virtual machine, 2 AVX2 cores at 2.5 GHz, a share of 20 GB/s", 20e9, 2 * 2.5e9 * 32, 0, 2 * 2.5e9 * 64, 2 * 2.5e9 * 64},
      {"laptop-ddr4", "4 AVX2 cores at 3 GHz, 2 channels DDR4-3200", 51.2e9, 4 * 3e9 * 32, 0, 4 * 3e9 * 64, 4 * 3e9 * 64},
      {"desktop-ddr5", "8 AVX-512 cores at 4.5 GHz, 2 channels DDR5-6000", 96e9, 8 * 4.5e9 * 64, 0, 8 * 4.5e9 * 128, 8 * 4.5e9 * 256},
      {"server-ddr5", "32 AVX-512 cores at 3 GHz, 8 channels DDR5-4800", 307e9, 32 * 3e9 * 64, 0, 32 * 3e9 * 128, 32 * 3e9 * 256},
  };
  return table;
}

const std::vector<Hardware> &llmc::cardTable(const std::string &chip) {
  static const std::vector<Hardware> hopper = {
      {"h100-pcie", "80 GB HBM2e, nominal 2.0 TB/s, 756 bf16 TFLOP/s", 2.0e12, 51e12, 756e12},
      {"h100-sxm", "80 GB HBM3, nominal 3.35 TB/s, 989 bf16 TFLOP/s", 3.35e12, 67e12, 989e12},
      {"h200-sxm", "141 GB HBM3e, nominal 4.8 TB/s, 989 bf16 TFLOP/s", 4.8e12, 67e12, 989e12},
  };
  static const std::vector<Hardware> none;
  return chip == "sm_90a" ? hopper : none;
}

/// What stands for a machine that nobody has named.
static std::string usualName(const std::string &isa, const std::string &device) {
  if (isa.rfind("sm_", 0) != 0)
    return isa == "avx2" ? "laptop-ddr4" : "desktop-ddr5";
  if (device.find("H200") != std::string::npos)
    return "h200-sxm";
  return device.find("H100 PCIe") != std::string::npos ? "h100-pcie" : "h100-sxm";
}

Hardware llmc::hardwareFor(const std::string &isa, const std::string &name, const std::string &device) {
  const std::vector<Hardware> &table = isa.rfind("sm_", 0) == 0 ? cardTable(isa) : hardwareTable();
  const std::string wanted = name.empty() ? usualName(isa, device) : name;
  std::vector<std::string> names;
  for (const Hardware &hardware : table) {
    if (hardware.name == wanted)
      return hardware;
    names.push_back(hardware.name);
  }
  throw Error("--hardware: expected " + join(names) + " for a package of " + isa + ", got " + quote(wanted));
}
