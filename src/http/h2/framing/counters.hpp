// counters: the outcomes of the HTTP/2 connections of one server.
// Threads: any.
#pragma once

#include <cstdint>

#include "http/h2/framing/frame_watch.hpp"
#include "http/server/numbers/event_counts.hpp"
#include "troupe/http/server.hpp"

namespace troupe::http::h2 {

enum class happening : std::uint8_t {
  connection,
  stream,
  refused_stream,
  reset_stream,
  count_of_happenings,
};

class counters {
 public:
  void count(happening event) noexcept { happenings_.count(event); }
  // A connection was ended for this reason.
  void count(excess reason) noexcept { ends_.count(reason); }

  http2_counts all() const noexcept {
    http2_counts sum;
    sum.connections = happenings_.of(happening::connection);
    sum.streams = happenings_.of(happening::stream);
    sum.refused_streams = happenings_.of(happening::refused_stream);
    sum.reset_streams = happenings_.of(happening::reset_stream);
    sum.header_lists = ends_.of(excess::header_list);
    sum.resets = ends_.of(excess::resets);
    sum.continuations = ends_.of(excess::continuations);
    sum.settings = ends_.of(excess::settings);
    sum.pings = ends_.of(excess::pings);
    sum.window_updates = ends_.of(excess::window_updates);
    sum.priorities = ends_.of(excess::priorities);
    sum.empty_data = ends_.of(excess::empty_data);
    sum.other_frames = ends_.of(excess::other_frames);
    sum.unread_answers = ends_.of(excess::unread_answers);
    sum.protocol_errors = ends_.of(excess::protocol_error);
    return sum;
  }

 private:
  event_counts<happening, happening::count_of_happenings> happenings_;
  event_counts<excess, excess::count_of_excesses> ends_;
};

}  // namespace troupe::http::h2
