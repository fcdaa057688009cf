//===- DType.cpp - names and sizes of storage types -----------------------===//
//
// Apart from the readers of files, so that the runtime links this and no reader.
//
//===----------------------------------------------------------------------===//
#include "llmc/Frontend/ModelFacts.h"

using namespace llmc;

const char *llmc::toString(DType type) {
  switch (type) {
  case DType::F32:
    return "F32";
  case DType::F16:
    return "F16";
  case DType::BF16:
    return "BF16";
  case DType::Q4_0:
    return "Q4_0";
  case DType::Q4_1:
    return "Q4_1";
  case DType::Q8_0:
    return "Q8_0";
  }
  return "?";
}

unsigned llmc::blockSize(DType type) { return type <= DType::BF16 ? 1 : 32; }

uint64_t llmc::storageBytes(DType type, uint64_t count) {
  switch (type) {
  case DType::F32:
    return count * 4;
  case DType::F16:
  case DType::BF16:
    return count * 2;
  case DType::Q4_0:
    return count / 32 * 18;
  case DType::Q4_1:
    return count / 32 * 20;
  case DType::Q8_0:
    return count / 32 * 34;
  }
  return 0;
}
