// The floor: a bare loop over io_uring that receives and sends in turn, with one system call a
// round.
#include <liburing.h>

#include "../floor/loopback.hpp"

namespace {

struct connection {
  int fd;
  bool sends = false;
  std::array<char, 4096> buffer;
};

}  // namespace

int main() {
  const int listener = loopback::listen_and_tell(0);
  if (listener < 0) return 1;
  io_uring ring;
  io_uring_params wanted{};
  wanted.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
  wanted.cq_entries = 32'768;
  if (io_uring_queue_init_params(4096, &ring, &wanted) < 0) return 1;
  const auto entry = [&ring] {
    io_uring_sqe* made = io_uring_get_sqe(&ring);
    for (; made == nullptr; made = io_uring_get_sqe(&ring)) io_uring_submit(&ring);
    return made;
  };
  io_uring_sqe* accepting = entry();
  io_uring_prep_multishot_accept(accepting, listener, nullptr, nullptr, 0);
  io_uring_sqe_set_data(accepting, nullptr);
  const auto receive = [&](connection& one) {
    io_uring_sqe* next = entry();
    one.sends = false;
    io_uring_prep_recv(next, one.fd, one.buffer.data(), one.buffer.size(), 0);
    io_uring_sqe_set_data(next, &one);
  };
  for (;;) {
    io_uring_submit_and_wait(&ring, 1);
    unsigned head = 0, count = 0;
    io_uring_cqe* done = nullptr;
    io_uring_for_each_cqe(&ring, head, done) {
      ++count;
      auto* one = static_cast<connection*>(io_uring_cqe_get_data(done));
      if (one == nullptr) {
        if (done->res >= 0) receive(*new connection{done->res, false, {}});
      } else if (one->sends) {
        receive(*one);
      } else if (done->res <= 0) {
        ::close(one->fd);
        delete one;
      } else {
        io_uring_sqe* next = entry();
        one->sends = true;
        io_uring_prep_send(next, one->fd, one->buffer.data(), static_cast<std::size_t>(done->res),
                           MSG_NOSIGNAL);
        io_uring_sqe_set_data(next, one);
      }
    }
    io_uring_cq_advance(&ring, count);
  }
}
