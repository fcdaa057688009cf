//===- Hardware.cpp -------------------------------------------------------===//
//
// Bandwidth: channels * 8 bytes * transfer rate. Operations: cores * clock * (units * lanes * 2), with AVX2 two FMA
// units of 8 lanes and, for int8, vpmaddubsw + vpmaddwd (32 a cycle and unit, half used); AVX-512 VNNI two vpdpbusd of 64.
// Cards: nominal bandwidth and dense bf16 of NVIDIA's data sheets.
//
//===----------------------------------------------------------------------===//
#include "Hardware.h"

using namespace llmc;

const std::vector<Hardware> &llmc::hardwareTable() {
  static const std::vector<Hardware> table = {
      {"vm-2", "virtual machine, 2 AVX2 cores at 2.5 GHz, a share of 20 GB/s", 20e9, 2 * 2.5e9 * 64, 2 * 2.5e9 * 32},
      {"laptop-ddr4", "4 AVX2 cores at 3 GHz, 2 channels DDR4-3200", 51.2e9, 4 * 3e9 * 64, 4 * 3e9 * 32},
      {"desktop-ddr5", "8 AVX-512 cores at 4.5 GHz, 2 channels DDR5-6000", 96e9, 8 * 4.5e9 * 256, 8 * 4.5e9 * 64},
      {"server-ddr5", "32 AVX-512 cores at 3 GHz, 8 channels DDR5-4800", 307e9, 32 * 3e9 * 256, 32 * 3e9 * 64},
  };
  return table;
}

const std::vector<Hardware> &llmc::cardTable(const std::string &chip) {
  static const std::vector<Hardware> hopper = {
      {"h100-pcie", "80 GB HBM2e, nominal 2.0 TB/s, 756 bf16 TFLOP/s", 2.0e12, 0, 756e12},
      {"h100-sxm", "80 GB HBM3, nominal 3.35 TB/s, 989 bf16 TFLOP/s", 3.35e12, 0, 989e12},
      {"h200-sxm", "141 GB HBM3e, nominal 4.8 TB/s, 989 bf16 TFLOP/s", 4.8e12, 0, 989e12},
  };
  static const std::vector<Hardware> none;
  return chip == "sm_90a" ? hopper : none;
}
