// library: which Asio the component speaks to: Asio itself, or Boost.Asio where
// TROUPE_BOOST_ASIO is defined. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#if defined(TROUPE_BOOST_ASIO)
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/version.hpp>
#include <boost/system/system_error.hpp>
#define TROUPE_ASIO boost::asio
#define TROUPE_ASIO_ABI boost_asio
#define TROUPE_ASIO_CANCELS (BOOST_ASIO_VERSION >= 101900)
#if TROUPE_ASIO_CANCELS
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#endif
#else
#include <asio/async_result.hpp>
#include <asio/error.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <asio/post.hpp>
#include <asio/system_error.hpp>
#include <asio/version.hpp>
#define TROUPE_ASIO asio
#define TROUPE_ASIO_ABI plain_asio
#define TROUPE_ASIO_CANCELS (ASIO_VERSION >= 101900)
#if TROUPE_ASIO_CANCELS
#include <asio/cancellation_signal.hpp>
#include <asio/strand.hpp>
#endif
#endif

namespace troupe::parts {
// The names that depend on the choice lie in an inline namespace of its name, and one program
// may have files with Asio and others with Boost.Asio.
inline namespace TROUPE_ASIO_ABI {
namespace asio_library = ::TROUPE_ASIO;
#if defined(TROUPE_BOOST_ASIO)
using asio_error_code = ::boost::system::error_code;
using asio_system_error = ::boost::system::system_error;
#else
using asio_error_code = ::asio::error_code;
using asio_system_error = ::asio::system_error;
#endif
}  // namespace TROUPE_ASIO_ABI
}  // namespace troupe::parts
