#include "http/coding/encoder.hpp"

#define ZLIB_CONST
#include <zlib.h>
#if TROUPE_HAS_LIBBROTLIENC
#include <brotli/encode.h>
#endif
#if TROUPE_HAS_LIBZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>

namespace troupe::http {

namespace {

// How hard each one tries: about as fast as answers are made, not as small as possible.
constexpr int gzip_level = 5;
constexpr std::size_t bytes_at_once = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr std::size_t room_bytes = 16 * 1024;

class gzip_encoder final : public encoder {
 public:
  gzip_encoder() {
    constexpr int as_gzip = 16;
    if (deflateInit2(&stream_, gzip_level, Z_DEFLATED, MAX_WBITS + as_gzip, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~gzip_encoder() override { deflateEnd(&stream_); }

  void add(std::string_view bytes, std::string& to, until state) override {
    do {
      const std::string_view now = bytes.substr(0, bytes_at_once);
      bytes.remove_prefix(now.size());
      add_part(now, to,
               !bytes.empty() || state == until::more ? Z_NO_FLUSH
               : state == until::end                  ? Z_FINISH
                                                      : Z_SYNC_FLUSH);
    } while (!bytes.empty());
  }
  void reset() override { deflateReset(&stream_); }

 private:
  void add_part(std::string_view bytes, std::string& coded, int flush) {
    std::array<Bytef, room_bytes> room;
    stream_.next_in = reinterpret_cast<const Bytef*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = room.data();
      stream_.avail_out = static_cast<uInt>(room.size());
      deflate(&stream_, flush);
      coded.append(reinterpret_cast<const char*>(room.data()), room.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  z_stream stream_{};
};

#if TROUPE_HAS_LIBBROTLIENC
class brotli_encoder final : public encoder {
 public:
  explicit brotli_encoder(window within) : is_small_(within == window::small) {
    brotli_encoder::reset();
  }

  void add(std::string_view bytes, std::string& coded, until state) override {
    const BrotliEncoderOperation operation = state == until::end     ? BROTLI_OPERATION_FINISH
                                             : state == until::flush ? BROTLI_OPERATION_FLUSH
                                                                     : BROTLI_OPERATION_PROCESS;
    const auto* next = reinterpret_cast<const std::uint8_t*>(bytes.data());
    std::size_t left = bytes.size();
    do {
      std::size_t no_room = 0;
      if (BrotliEncoderCompressStream(state_.get(), operation, &left, &next, &no_room, nullptr,
                                      nullptr) == BROTLI_FALSE)
        throw std::bad_alloc();
      std::size_t coded_bytes = 0;
      const std::uint8_t* const text = BrotliEncoderTakeOutput(state_.get(), &coded_bytes);
      coded.append(reinterpret_cast<const char*>(text), coded_bytes);
    } while (left != 0 || BrotliEncoderHasMoreOutput(state_.get()) != BROTLI_FALSE);
  }
  void reset() override {
    state_.reset(BrotliEncoderCreateInstance(nullptr, nullptr, nullptr));
    if (state_ == nullptr) throw std::bad_alloc();
    const std::uint32_t quality = is_small_ ? 3 : 4, window_bits = is_small_ ? 16 : 18;
    BrotliEncoderSetParameter(state_.get(), BROTLI_PARAM_QUALITY, quality);
    BrotliEncoderSetParameter(state_.get(), BROTLI_PARAM_LGWIN, window_bits);
    if (is_small_) BrotliEncoderSetParameter(state_.get(), BROTLI_PARAM_LGBLOCK, window_bits);
  }

 private:
  struct end_state {
    void operator()(BrotliEncoderState* ended) const noexcept {
      BrotliEncoderDestroyInstance(ended);
    }
  };
  const bool is_small_;
  std::unique_ptr<BrotliEncoderState, end_state> state_;
};
#endif

#if TROUPE_HAS_LIBZSTD
class zstd_encoder final : public encoder {
 public:
  explicit zstd_encoder(window within) : context_(ZSTD_createCCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    // Browsers refuse a window of more than 8 MiB; half a MiB keeps the encoder small.
    const bool is_small = within == window::small;
    const int level = 3, window_bits = is_small ? 16 : 19;
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_windowLog, window_bits);
    if (!is_small) return;
    constexpr int table_bits = 14;
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_hashLog, table_bits);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_chainLog, table_bits);
  }

  void add(std::string_view bytes, std::string& coded, until state) override {
    const ZSTD_EndDirective directive = state == until::end     ? ZSTD_e_end
                                        : state == until::flush ? ZSTD_e_flush
                                                                : ZSTD_e_continue;
    std::array<char, room_bytes> room;
    ZSTD_inBuffer from{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer output{room.data(), room.size(), 0};
      const std::size_t left = ZSTD_compressStream2(context_.get(), &output, &from, directive);
      if (ZSTD_isError(left)) throw std::bad_alloc();
      coded.append(room.data(), output.pos);
      if (directive == ZSTD_e_continue ? from.pos == from.size : left == 0) return;
    }
  }
  void reset() override { ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_only); }

 private:
  struct end_context {
    void operator()(ZSTD_CCtx* ended) const noexcept { ZSTD_freeCCtx(ended); }
  };
  std::unique_ptr<ZSTD_CCtx, end_context> context_;
};
#endif

}  // namespace

std::string_view name_of(coding format) noexcept {
  switch (format) {
    case coding::gzip:
      return "gzip";
    case coding::brotli:
      return "br";
    case coding::zstd:
      return "zstd";
  }
  return {};
}

bool has_coding(coding format) noexcept {
  switch (format) {
    case coding::gzip:
      return true;
    case coding::brotli:
      return TROUPE_HAS_LIBBROTLIENC != 0;
    case coding::zstd:
      return TROUPE_HAS_LIBZSTD != 0;
  }
  return false;
}

std::unique_ptr<encoder> make_encoder(coding format, encoder::window within) {
#if TROUPE_HAS_LIBBROTLIENC
  if (format == coding::brotli) return std::make_unique<brotli_encoder>(within);
#endif
#if TROUPE_HAS_LIBZSTD
  if (format == coding::zstd) return std::make_unique<zstd_encoder>(within);
#endif
  // gzip has one size; without the others
  static_cast<void>(format), static_cast<void>(within);
  return std::make_unique<gzip_encoder>();
}

// Measured with brotli 1.0.9 and zstd 1.5.4; for gzip the formula of zlib's manual.
std::size_t small_encoder_bytes(coding format) noexcept {
  return format == coding::gzip ? std::size_t{264} * 1024 : std::size_t{672} * 1024;
}

}  // namespace troupe::http
