//===- TestModels.h - tiny model files, good and broken ---------*- C++ -*-===//
#ifndef LLMC_TEST_LIB_FRONTEND_TESTMODELS_H
#define LLMC_TEST_LIB_FRONTEND_TESTMODELS_H

#include "llmc/Frontend/ModelFacts.h"

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

namespace llmc::test {

/// A folder that is removed at the end of the test.
class TempDir {
public:
  TempDir();
  ~TempDir();
  std::string path;
  std::string file(const std::string &name) const { return path + "/" + name; }
  /// Writes `bytes` to path/name (folders made) and returns the full path.
  std::string write(const std::string &name, const std::string &bytes) const;
};

template <class T> std::string bytesOf(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

/// GGUF strings: u64 length, text.
inline std::string ggufString(const std::string &text) { return bytesOf<uint64_t>(text.size()) + text; }

/// Writes GGUF files, including ones that lie: pairs and tensors are raw bytes.
class GGUFWriter {
public:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims; // innermost first, as in the file
    uint32_t type = 0;
    std::string data;
  };
  uint32_t version = 3;
  uint64_t alignment = 32;
  std::vector<std::pair<std::string, std::string>> pairs; // key -> type and value
  std::vector<Tensor> tensors;

  void raw(const std::string &key, uint32_t type, const std::string &value);
  void u32(const std::string &key, uint32_t value) { raw(key, 4, bytesOf(value)); }
  void f32(const std::string &key, float value) { raw(key, 6, bytesOf(value)); }
  void boolean(const std::string &key, bool value) { raw(key, 7, bytesOf<uint8_t>(value)); }
  void string(const std::string &key, const std::string &value) { raw(key, 8, ggufString(value)); }
  void strings(const std::string &key, const std::vector<std::string> &values);
  void i32s(const std::string &key, const std::vector<int32_t> &values);
  void remove(const std::string &key);
  Tensor &tensor(const std::string &name);
  void removeTensor(const std::string &name);

  std::string build() const;
  std::string header() const; // all but padding and data
};

/// Geometry of a tiny model; vocab is that of the tiny tokenizer.
struct Tiny {
  std::string architecture = "llama";
  int64_t hidden = 40, layers = 2, heads = 4, kvHeads = 2, headDim = 10, ffn = 24;
  bool tied = true, bias = false;
  static constexpr int64_t vocab = 9;
};

GGUFWriter tinyGGUF(const Tiny &model = {});

/// name -> (dtype, shape, data) of a safetensors file, in file order.
struct StoredTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
};
std::vector<StoredTensor> tinyTensors(const Tiny &model = {}, const std::string &dtype = "F32");
std::string safetensors(const std::vector<StoredTensor> &tensors);
std::string safetensorsRaw(const std::string &json, size_t dataBytes);

std::string tinyConfig(const Tiny &model = {}, const std::string &more = "");
std::string tinyTokenizer();
/// Writes a whole folder (single file) and returns its path.
std::string tinyFolder(const TempDir &dir, const Tiny &model = {}, const std::string &moreConfig = "");

/// loadModelFacts(path) must throw Error with every one of `parts` in its message.
void expectError(const std::string &path, const std::vector<std::string> &parts, const LoadOptions &options = {});

} // namespace llmc::test

#endif // LLMC_TEST_LIB_FRONTEND_TESTMODELS_H
