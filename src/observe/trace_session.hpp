// trace_session: decides when a trace is taken and when it is written.
#pragma once

namespace troupe::observe {

// Each runtime has its own. The first reads TROUPE_TRACE: FILE.json writes a trace for viewers to
// that file, `text` writes a table to standard error. The trace is written when the last runtime
// has ended, at exit(), and at a crash (a signal such as SIGSEGV or SIGABRT, which then has its
// effect). Throws option_error for another setting, or for a file that cannot be written.
class trace_session {
 public:
  trace_session();
  trace_session(const trace_session&) = delete;
  trace_session& operator=(const trace_session&) = delete;
  ~trace_session();
};

// From now on a crash calls that in the signal handler, after the trace, if one is taken, was
// written. Call it once. Thread: any.
void write_at_crash(void (*write)() noexcept) noexcept;

}  // namespace troupe::observe
