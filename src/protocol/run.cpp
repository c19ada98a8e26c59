#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "io/operations/of_file.hpp"
#include "troupe/context/snapshot.hpp"
#include "troupe/io/error.hpp"
#include "troupe/io/file.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/protocol/connection.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe {

line_too_long::line_too_long(std::size_t most)
    : error("troupe: protocol: a peer sent a line of more than " + std::to_string(most) +
            " bytes (protocol_options::line_bytes_max)") {}

namespace protocols {
namespace {

constexpr std::size_t first_read_bytes = io_buffer::bytes_max;
constexpr std::chrono::nanoseconds rejection_linger_max = std::chrono::seconds(2);
constexpr std::size_t rejection_linger_bytes_max = std::size_t{1} << 20;

}  // namespace

std::string_view keep_text(context& memory, std::string_view text) {
  if (text.empty()) return {};
  auto* const copy = static_cast<char*>(memory.allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

// Runs one connection, from its first callback to its last one.
struct runner {
  callbacks& handlers;
  const protocol_options& options;
  owned_context memory;  // null while the connection waits with a leased buffer
  std::optional<snapshot> idle{};
  connection peer;
  io_buffer came{};  // bytes to be sent may lie in it
  given to_callback{};
  outgoing out{};
  bool something = false;  // something was sent since the last callback
  bool by_peer = false;    // the exception comes from the stream, or its time is over
  std::size_t read_bytes = first_read_bytes;
  std::string unfinished{};  // the beginning of a line
  bool too_long = false;     // the line behind those that were passed on is too long

  runner(callbacks& callee, const wire& on, const protocol_options& chosen)
      : handlers(callee),
        options(chosen),
        memory(make_context(options.context)),
        peer(on, *memory) {
    idle.emplace(*memory);
    adapt(0);
  }

  stream& line() noexcept { return peer.wire_.peer_stream; }

  // Runs a callback in the connection's context.
  template <class Callback>
  void call(Callback callback) {
    begin_memory();
    const context_scope inside(*memory);
    callback();
  }

  // A context from the pool costs about 20 ns.
  void begin_memory() {
    if (memory) return;
    memory = make_context(options.context);
    idle.emplace(*memory);
    peer.memory_ = memory.get();
  }
  void give_memory_back() noexcept {
    idle.reset();
    memory.release();
  }

  bool has_something() const noexcept {
    return !out.owned.empty() || !out.view.empty() || out.file != nullptr || !peer.more_.empty();
  }

  // Work that an idle connection does not do is in tasks of its own, so that their memory is freed
  // when they end.

  // The context keeps the memory of a callback until everything that the callback returned was
  // sent.
  task<> converse() {
    something = !handlers.first.empty();
    if (something) co_await write(handlers.first);
    call([this] { handlers.made(peer, out); });
    for (;;) {
      if (out.later || has_something()) co_await send_what_was_returned();
      out.clear();
      peer.more_.clear();
      came.reset();
      if (memory) memory->rollback(*idle);
      if (peer.closing_ || options.stop.stop_requested()) break;
      if (too_long) {
        by_peer = true;  // no callback has caused it
        throw line_too_long(options.line_bytes_max);
      }
      if (std::exchange(something, false) && handlers.hears_of_sent) {
        call([this] { handlers.sent(peer, out); });
        continue;
      }
      std::size_t bytes = 0;
      if (read_bytes == io_buffer::bytes_max) {
        give_memory_back();
        by_peer = true;
        came = co_await line().read_some().timeout(options.idle_max).stop(options.stop);
        by_peer = false;
        bytes = came.size();
        receive(came.bytes());
      } else {
        bytes = co_await receive_much();
      }
      if (bytes == 0) co_return;
      adapt(bytes);
    }
    co_await linger_after_rejection();
  }

  task<> send_what_was_returned() {
    if (out.later) {
      task<> rest = std::move(*out.later);
      out.later.reset();
      co_await std::move(rest);
    }
    if (!has_something()) co_return;
    something = true;
    if (!out.owned.empty()) co_await write(out.owned);
    if (!out.view.empty()) co_await write(out.view);
    if (out.file) co_await send_file();
    if (!peer.more_.empty()) co_await write(peer.more_);
  }

  task<std::size_t> receive_much() {
    begin_memory();
    const std::span<std::byte> buffer(static_cast<std::byte*>(memory->allocate(read_bytes, 1)),
                                      read_bytes);
    by_peer = true;
    const std::size_t bytes =
        co_await line().read(buffer).timeout(options.idle_max).stop(options.stop);
    by_peer = false;
    receive(buffer.first(bytes));
    co_return bytes;
  }

  void receive(std::span<const std::byte> bytes) {
    if (!handlers.hears_of_data || bytes.empty()) return;
    begin_memory();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!handlers.by_lines) {
      to_callback.bytes = bytes;
      to_callback.text = text;
      return call([this] { handlers.received(peer, to_callback, out); });
    }
    const std::size_t last = text.rfind('\n');
    if (last == std::string_view::npos) {
      unfinished.append(text);
      too_long = is_too_long(unfinished);
      return;
    }
    std::string_view whole = text.substr(0, last + 1);
    if (!unfinished.empty()) {
      // Joins the two parts of a line.
      auto* const joined =
          static_cast<char*>(memory->allocate(unfinished.size() + whole.size(), 1));
      std::memcpy(joined, unfinished.data(), unfinished.size());
      std::memcpy(joined + unfinished.size(), whole.data(), whole.size());
      whole = {joined, unfinished.size() + whole.size()};
    }
    unfinished.assign(text.substr(last + 1));
    too_long = is_too_long(unfinished);
    // The lines lie in the context, because a callback that is a coroutine reads them after this
    // function has returned.
    auto& lines = *memory->make<std::pmr::vector<std::string_view>>();
    lines.reserve(static_cast<std::size_t>(std::ranges::count(whole, '\n')));
    for (std::size_t begin = 0; begin < whole.size();) {
      const std::size_t end = whole.find('\n', begin);
      std::string_view line_text = whole.substr(begin, end - begin);
      if (is_too_long(line_text)) {
        too_long = true;
        break;
      }
      if (line_text.ends_with('\r')) line_text.remove_suffix(1);
      lines.push_back(line_text);
      begin = end + 1;
    }
    if (lines.empty()) return;
    to_callback.lines = lines;
    call([this] { handlers.received(peer, to_callback, out); });
  }
  // A final CR may be half of the line end: it does not count.
  bool is_too_long(std::string_view line) const noexcept {
    return line.size() - (line.ends_with('\r') ? 1 : 0) > options.line_bytes_max;
  }

  // Reads from a peer that sends much in large parts, and keeps an idle connection small.
  void adapt(std::size_t got) noexcept {
    if (got == read_bytes) {
      read_bytes *= 2;
    } else if (got < read_bytes / 4) {
      read_bytes = std::max(first_read_bytes, read_bytes / 2);
    }
    read_bytes =
        std::clamp<std::size_t>(read_bytes, 1, std::max<std::size_t>(1, options.receive_bytes_max));
  }

  task<> write(std::string_view bytes) {
    by_peer = true;
    while (!bytes.empty()) {
      const std::size_t sent = co_await line().write(bytes).timeout(options.stall_max);
      bytes.remove_prefix(sent);
    }
    by_peer = false;
  }

  task<> send_file() {
    const file_to_send& sent_file = *out.file;
    file from = co_await file::open(sent_file.path);
    std::uint64_t left = sent_file.bytes;
    if (left == file_to_send::to_the_end) {
      const std::uint64_t all = co_await from.size();
      left = all > sent_file.offset ? all - sent_file.offset : 0;
    }
    if (!sent_file.before.empty()) co_await write(sent_file.before);
    by_peer = true;
    std::uint64_t done = 0;
    while (done < left) {
      std::size_t sent = 0;
      try {
        sent = co_await line()
                   .send_file_some(from, sent_file.offset + done, left - done)
                   .timeout(options.stall_max);
      } catch (const io_error& e) {
        if (!io::is_of_file(e)) throw;
        by_peer = false;
        throw io_error("send_file", sent_file.path, e.code().value());
      }
      if (sent == 0) break;
      done += sent;
    }
    by_peer = false;
    if (done < left) throw end_of_file("send_file", sent_file.path, done);
    if (!sent_file.after.empty()) co_await write(sent_file.after);
  }

  // Closing a stream with unread bytes resets it, and the peer may then lose the bytes that were
  // sent last. The unread bytes are therefore read before the stream is closed.
  task<> linger_after_rejection() {
    by_peer = true;
    peer.wire_.shut_down_write(line());
    std::array<std::byte, first_read_bytes> unread;
    // The limit for all reads together, however few bytes come at a time.
    const std::chrono::nanoseconds until = now() + rejection_linger_max;
    for (std::size_t all = 0; all < rejection_linger_bytes_max;) {
      const std::chrono::nanoseconds left = until - now();
      if (left.count() <= 0) break;
      std::size_t bytes = 0;
      try {
        bytes = co_await line().read(unread).timeout(left);
      } catch (const timed_out&) {  // the peer has not closed
      }
      if (bytes == 0) break;
      all += bytes;
    }
    by_peer = false;
  }

  // The same for a connection that was waiting when the stop came: sent bytes may still be on
  // their way.
  task<> try_rejection_linger() {
    try {
      co_await linger_after_rejection();
    } catch (const error&) {  // its peer has disconnected
    }
  }

  // Calls the protocol's error(). Returns the exception that is left to report, or null.
  task<std::exception_ptr> tell(std::exception_ptr failure) {
    if (!handlers.hears_of_errors) co_return by_peer ? nullptr : failure;
    std::exception_ptr another;
    to_callback.error = std::move(failure);
    try {
      out.clear();
      call([this] { handlers.failed(peer, to_callback, out); });
      if (out.later) co_await std::move(*out.later);
    } catch (...) {
      another = std::current_exception();
    }
    out.later.reset();
    to_callback.error = nullptr;
    co_return another;
  }

  // An exception that was thrown may lie in this memory.
  owned_context take_memory() noexcept {
    idle.reset();
    return std::move(memory);
  }

  task<> close() {
    call([this] { handlers.closed(peer, out); });
    if (out.later) co_await std::move(*out.later);
  }
};

task<> run(callbacks& handlers, wire on, const protocol_options& options, failures_to receiver) {
  runner conversation(handlers, on, options);
  std::exception_ptr failure;
  try {
    co_await conversation.converse();
  } catch (...) {
    failure = std::current_exception();
  }
  const bool ended = co_await submissions::being_cancelled();
  conversation.out.later.reset();
  if (failure != nullptr && !ended) {
    const bool by_stop = conversation.by_peer && conversation.options.stop.stop_requested();
    std::exception_ptr left;
    if (by_stop) {
      co_await conversation.try_rejection_linger();
    } else {
      left = co_await conversation.tell(std::move(failure));
    }
    failure = std::move(left);
  }
  try {
    co_await conversation.close();
  } catch (...) {
    if (failure == nullptr) failure = std::current_exception();
  }
  conversation.line().close();
  if (failure == nullptr) co_return;
  if (ended || receiver == failures_to::awaiting_task) std::rethrow_exception(failure);
  conversation.out.later.reset();
  submissions::report(std::move(failure), conversation.take_memory());
}

}  // namespace protocols

}  // namespace troupe
