// counters: what became of the HTTP/2 connections of one server.
// Threads: any.
#pragma once

#include <cstdint>

#include "http/h2/framing/frame_watch.hpp"
#include "http/server/event_counts.hpp"
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
  void count(happening what) noexcept { happenings_.count(what); }
  // A connection was ended for this reason.
  void count(excess what) noexcept { ends_.count(what); }

  http2_counts all() const noexcept {
    http2_counts made;
    made.connections = happenings_.of(happening::connection);
    made.streams = happenings_.of(happening::stream);
    made.refused_streams = happenings_.of(happening::refused_stream);
    made.reset_streams = happenings_.of(happening::reset_stream);
    made.header_lists = ends_.of(excess::header_list);
    made.resets = ends_.of(excess::resets);
    made.continuations = ends_.of(excess::continuations);
    made.settings = ends_.of(excess::settings);
    made.pings = ends_.of(excess::pings);
    made.window_updates = ends_.of(excess::window_updates);
    made.priorities = ends_.of(excess::priorities);
    made.empty_data = ends_.of(excess::empty_data);
    made.other_frames = ends_.of(excess::other_frames);
    made.unread_answers = ends_.of(excess::unread_answers);
    made.protocol_errors = ends_.of(excess::protocol_error);
    return made;
  }

 private:
  event_counts<happening, happening::count_of_happenings> happenings_;
  event_counts<excess, excess::count_of_excesses> ends_;
};

}  // namespace troupe::http::h2
