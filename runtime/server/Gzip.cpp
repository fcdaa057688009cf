//===- Gzip.cpp -----------------------------------------------------------===//
#include "runtime/server/Gzip.h"
#include "runtime/server/Http.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>
#include <zlib.h>

namespace llmc {

static constexpr int kGzip = 15 + 16; // windowBits: the largest window, and a header of gzip
static constexpr size_t kChunk = 64 << 10;

static Bytef *bytesOf(std::string_view text) { return reinterpret_cast<Bytef *>(const_cast<char *>(text.data())); }

std::string unpackGzip(std::string_view bytes, uint64_t most) {
  z_stream z{};
  if (inflateInit2(&z, kGzip) != Z_OK)
    throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream *)> end(&z, inflateEnd);
  z.next_in = bytesOf(bytes);
  z.avail_in = uInt(bytes.size());
  std::vector<char> chunk(kChunk);
  std::string text;
  for (int status = Z_OK; status != Z_STREAM_END || z.avail_in > 0;) {
    if (status == Z_STREAM_END) // members may follow each other
      inflateReset(&z);
    z.next_out = reinterpret_cast<Bytef *>(chunk.data());
    z.avail_out = uInt(chunk.size());
    status = inflate(&z, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END)
      throw HttpError(400, std::string("body: expected gzip, as its content-encoding says, got ") +
                               (status == Z_BUF_ERROR ? "the beginning of it" : z.msg ? z.msg : "something else"));
    text.append(chunk.data(), chunk.size() - z.avail_out);
    if (text.size() > most)
      throw HttpError(413, "body: expected at most " + std::to_string(most) + " bytes when unpacked, got more");
  }
  return text;
}

std::string packGzip(std::string_view text) {
  z_stream z{};
  if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream *)> end(&z, deflateEnd);
  std::string packed(deflateBound(&z, uLong(text.size())), '\0');
  z.next_in = bytesOf(text);
  z.avail_in = uInt(text.size());
  z.next_out = bytesOf(packed);
  z.avail_out = uInt(packed.size());
  deflate(&z, Z_FINISH); // all fits
  packed.resize(z.total_out);
  return packed;
}

static std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

bool acceptsGzip(std::string_view accept) {
  bool any = false;
  while (!accept.empty()) {
    const size_t comma = std::min(accept.find(','), accept.size());
    const std::string_view item = accept.substr(0, comma);
    accept.remove_prefix(std::min(comma + 1, accept.size()));
    const size_t semicolon = std::min(item.find(';'), item.size());
    const std::string_view coding = trimmed(item.substr(0, semicolon)), weight = trimmed(item.substr(std::min(semicolon + 1, item.size())));
    const bool wanted = !(weight.starts_with("q=") || weight.starts_with("Q=")) || std::strtod(std::string(weight.substr(2)).c_str(), nullptr) > 0;
    if (equalNoCase(coding, "gzip") || equalNoCase(coding, "x-gzip"))
      return wanted;
    any |= coding == "*" && wanted;
  }
  return any;
}

} // namespace llmc
