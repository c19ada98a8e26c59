// An answer that would be sent from a string that is gone.
// expect: troupe: this text is kept, and would be destroyed before it is read
#include <troupe/http/response.hpp>

using troupe::http::response;

response use(const std::string& kept) {
#ifdef CONTROL
  return response::view(kept, "text/plain");
#else
  return response::view(kept + "!", "text/plain");
#endif
}
