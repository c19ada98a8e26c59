// session: when a trace is taken, and when it is written.
#pragma once

namespace troupe::observe {

// One for each runtime. The first reads TROUPE_TRACE: FILE.json writes a trace for viewers to that
// file, `text` a table to standard error. It is written when the last runtime has ended, at exit()
// and at a crash (a signal such as SIGSEGV or SIGABRT, which then has its effect). Throws
// option_error: another setting, or a file that cannot be written.
class session {
 public:
  session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();
};

}  // namespace troupe::observe
