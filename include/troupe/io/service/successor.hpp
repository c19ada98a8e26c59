// successor: starts the program anew and hands its listening sockets over, so that a restart loses
// no request.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <string>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/io/process.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/io/unix_socket.hpp"
#include "troupe/task/task.hpp"

namespace troupe::service {

// Both processes have the same sockets: the system queues connections for whichever accepts them,
// and refuses none in between. The new process takes them by inherited_sockets, and calls ready()
// when it accepts. Then the old one stops accepting, lets its connections end
// (http::server::drain()), and exits.
//
// Under systemd (`Type=notify`) the new process becomes the service's main process. Limits: the new
// process is the same program or another one that uses this class; other libraries may refuse the
// sockets, since LISTEN_PID is not set.
//
// Example (declarations):
//     // Starts this program again. False: the new one is no good, and this process continues.
//     troupe::task<bool> restart(troupe::service::successor& next) {
//       bool is_replaced = true;
//       try {
//         std::vector<std::string> arguments;
//         co_await next.start("/proc/self/exe", std::move(arguments));
//       } catch (const troupe::error& why) {
//         std::cerr << why.what() << '\n';
//         is_replaced = false;
//       }
//       co_return is_replaced;
//     }
class successor {
 public:
  successor() = default;
  successor(successor&& other) noexcept { *this = std::move(other); }
  successor& operator=(successor&& other) noexcept;
  ~successor();

  // The socket of the listener is handed over as well. Call it before the listener is moved into a
  // server. The socket stays open in this process until this object is destroyed: destroy it where
  // the program ends without a successor, since clients that connect later would get no answer. The
  // file of a Unix socket belongs to this object then, and later to the new process. Names may be
  // empty; they have no ':'. Throws option_error for others, io_error.
  void hand(const tcp_listener& listener, std::string name = {});
  void hand(unix_listener& listener, std::string name = {});

  // Starts the program, and completes when it is ready. It has the environment and the standard
  // streams of this process. Await it in a task. Errors: as process::start; io_error if the program
  // ends before it is ready; timed_out if it is not ready in time: then it gets SIGTERM. After an
  // error this process continues as before, and may try again.
  task<process> start(std::string program, std::vector<std::string> arguments,
                      time_span at_most = std::chrono::seconds(60));

 private:
  struct handed {
    int fd;
    std::string name;
    io::socket_file file;
  };
  void add(int fd, std::string name, io::socket_file file);
  std::vector<handed> all_;
};

}  // namespace troupe::service
