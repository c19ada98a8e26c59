#include "http/coding/decoder.hpp"

#define ZLIB_CONST
#include <zlib.h>
#if TROUPE_HAS_LIBBROTLIDEC
#include <brotli/decode.h>
#endif
#if TROUPE_HAS_LIBZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <new>

#include "troupe/http/fields.hpp"

namespace troupe::http {

namespace {

// A body of several members, one behind the other, is as valid as one (RFC 1952, 2.2).
class gzip_decoder final : public decoder {
 public:
  gzip_decoder() {
    constexpr int as_gzip = 16;
    if (inflateInit2(&stream_, MAX_WBITS + as_gzip) != Z_OK) throw std::bad_alloc();
  }
  ~gzip_decoder() override { inflateEnd(&stream_); }

  std::size_t add(std::string_view& from, std::span<char> target) override {
    constexpr std::size_t at_once = std::size_t{1} << 30;  // zlib counts in 32 bits
    std::size_t decoded_bytes = 0;
    while (!malformed_ && decoded_bytes < target.size()) {
      const std::span<char> room =
          target.subspan(decoded_bytes, std::min(target.size() - decoded_bytes, at_once));
      const std::string_view now = from.substr(0, at_once);
      stream_.next_in = reinterpret_cast<const Bytef*>(now.data());
      stream_.avail_in = static_cast<uInt>(now.size());
      stream_.next_out = reinterpret_cast<Bytef*>(room.data());
      stream_.avail_out = static_cast<uInt>(room.size());
      if (may_end_ && now.empty()) break;
      const int said = inflate(&stream_, Z_NO_FLUSH);
      from.remove_prefix(now.size() - stream_.avail_in);
      decoded_bytes += room.size() - stream_.avail_out;
      may_end_ = said == Z_STREAM_END;
      if (said == Z_MEM_ERROR) throw std::bad_alloc();
      if (may_end_) {
        inflateReset(&stream_);
      } else if (said != Z_OK && said != Z_BUF_ERROR) {
        malformed_ = true;
      }
      if (from.empty() && stream_.avail_out != 0) break;
    }
    return decoded_bytes;
  }
  bool may_end() const noexcept override { return may_end_; }
  std::size_t memory() const noexcept override { return 40 * 1024; }

 private:
  z_stream stream_{};
  bool may_end_ = true;
};

#if TROUPE_HAS_LIBBROTLIDEC
class brotli_decoder final : public decoder {
 public:
  brotli_decoder() : state_(BrotliDecoderCreateInstance(&take, &give_back, this)) {
    if (state_ == nullptr) throw std::bad_alloc();
  }

  std::size_t add(std::string_view& from, std::span<char> target) override {
    if (malformed_ || (from.empty() && !has_begun_)) return 0;
    has_begun_ = true;
    if (ends_) {
      malformed_ = !from.empty();  // bytes behind the end
      return 0;
    }
    auto* next = reinterpret_cast<const std::uint8_t*>(from.data());
    auto* room = reinterpret_cast<std::uint8_t*>(target.data());
    std::size_t left = from.size(), free = target.size();
    const BrotliDecoderResult said =
        BrotliDecoderDecompressStream(state_.get(), &left, &next, &free, &room, nullptr);
    from.remove_prefix(from.size() - left);
    ends_ = said == BROTLI_DECODER_RESULT_SUCCESS;
    if (said == BROTLI_DECODER_RESULT_ERROR) fail();
    if (ends_ && !from.empty()) malformed_ = true;
    decoded_bytes_ += target.size() - free;
    return target.size() - free;
  }
  bool may_end() const noexcept override { return ends_ || !has_begun_; }
  // The window is used as it is filled.
  std::size_t memory() const noexcept override {
    return std::min(bytes_, apart_bytes + decoded_bytes_);
  }

 private:
  static constexpr std::size_t apart_bytes = 256 * 1024;  // at most, beside the window
  void fail() {
    const BrotliDecoderErrorCode why = BrotliDecoderGetErrorCode(state_.get());
    if (why <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
        why >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES)
      throw std::bad_alloc();
    malformed_ = true;
  }
  // Each block begins with its length, so that the memory is known.
  static constexpr std::size_t head = alignof(std::max_align_t);
  static void* take(void* self, std::size_t bytes) {
    void* const block = std::malloc(bytes + head);
    if (block == nullptr) return nullptr;
    *static_cast<std::size_t*>(block) = bytes;
    static_cast<brotli_decoder*>(self)->bytes_ += bytes;
    return static_cast<char*>(block) + head;
  }
  static void give_back(void* self, void* address) {
    if (address == nullptr) return;
    void* const block = static_cast<char*>(address) - head;
    static_cast<brotli_decoder*>(self)->bytes_ -= *static_cast<std::size_t*>(block);
    std::free(block);
  }
  struct end_state {
    void operator()(BrotliDecoderState* ended) const noexcept {
      BrotliDecoderDestroyInstance(ended);
    }
  };

  std::size_t decoded_bytes_ = 0;
  std::size_t bytes_ = 0;  // declared before the state, whose end counts here
  std::unique_ptr<BrotliDecoderState, end_state> state_;
  bool has_begun_ = false, ends_ = false;
};
#endif

#if TROUPE_HAS_LIBZSTD
// A body of several frames is as valid as one (RFC 8878, 3).
class zstd_decoder final : public decoder {
 public:
  zstd_decoder() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    constexpr int window_bits_max = 23;  // RFC 8878, 3.1.1.1.2: each decoder should take as much
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, window_bits_max);
  }

  std::size_t add(std::string_view& from, std::span<char> target) override {
    ZSTD_outBuffer output{target.data(), target.size(), 0};
    while (!malformed_ && output.pos < output.size && !(may_end_ && from.empty())) {
      ZSTD_inBuffer input{from.data(), from.size(), 0};
      const std::size_t before = output.pos;
      const std::size_t left = ZSTD_decompressStream(context_.get(), &output, &input);
      from.remove_prefix(input.pos);
      malformed_ = ZSTD_isError(left) != 0;
      may_end_ = left == 0;
      if (from.empty() && output.pos == before) break;
    }
    decoded_bytes_ += output.pos;
    return output.pos;
  }
  bool may_end() const noexcept override { return may_end_; }
  // The window that a sender declares is used as it is filled.
  std::size_t memory() const noexcept override {
    return std::min(ZSTD_sizeof_DCtx(context_.get()), apart_bytes + decoded_bytes_);
  }

 private:
  struct end_context {
    void operator()(ZSTD_DCtx* ended) const noexcept { ZSTD_freeDCtx(ended); }
  };
  static constexpr std::size_t apart_bytes = 512 * 1024;  // at most, beside the window
  std::unique_ptr<ZSTD_DCtx, end_context> context_;
  std::size_t decoded_bytes_ = 0;
  bool may_end_ = true;
};
#endif

}  // namespace

bool can_decode(coding format) noexcept {
  switch (format) {
    case coding::gzip:
      return true;
    case coding::brotli:
      return TROUPE_HAS_LIBBROTLIDEC != 0;
    case coding::zstd:
      return TROUPE_HAS_LIBZSTD != 0;
  }
  return false;
}

std::optional<coding> coding_named(std::string_view field) noexcept {
  for (const coding known : {coding::gzip, coding::brotli, coding::zstd})
    if (can_decode(known) && same_word(field, name_of(known))) return known;
  if (same_word(field, "x-gzip")) return coding::gzip;  // RFC 9110, 8.4.1.3
  return std::nullopt;
}

std::string_view decodable_codings() noexcept {
#if TROUPE_HAS_LIBBROTLIDEC && TROUPE_HAS_LIBZSTD
  return "gzip, br, zstd";
#elif TROUPE_HAS_LIBBROTLIDEC
  return "gzip, br";
#elif TROUPE_HAS_LIBZSTD
  return "gzip, zstd";
#else
  return "gzip";
#endif
}

std::unique_ptr<decoder> make_decoder(coding format) {
#if TROUPE_HAS_LIBBROTLIDEC
  if (format == coding::brotli) return std::make_unique<brotli_decoder>();
#endif
#if TROUPE_HAS_LIBZSTD
  if (format == coding::zstd) return std::make_unique<zstd_decoder>();
#endif
  static_cast<void>(format);  // without the others
  return std::make_unique<gzip_decoder>();
}

}  // namespace troupe::http
