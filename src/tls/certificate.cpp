// What is known about a connection and about its peer.
#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>

#include "tls/connection.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe {
namespace {

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

std::string name_of(const X509_NAME* name) {
  const tls::bio_ptr to(BIO_new(BIO_s_mem()));
  if (!to) throw std::bad_alloc();
  X509_NAME_print_ex(to.get(), name, 0,
                     XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB));
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(to.get(), &text);
  return {text, static_cast<std::size_t>(bytes)};
}

std::chrono::sys_seconds time_of(const ASN1_TIME* when) {
  std::tm parts{};
  if (when == nullptr || ASN1_TIME_to_tm(when, &parts) != 1) return {};
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

std::string text_of(const ASN1_STRING* of) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(of)),
          static_cast<std::size_t>(ASN1_STRING_length(of))};
}

std::vector<std::string> names_of(const X509& one) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, tls::freed_by<&GENERAL_NAMES_free>> all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&one, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS) names.push_back(text_of(name->d.dNSName));
    if (name->type == GEN_IPADD) {
      const std::string bytes = text_of(name->d.iPAddress);
      std::array<char, INET6_ADDRSTRLEN> text{};
      if (::inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text.data(),
                      text.size()))
        names.push_back(text.data());
    }
  }
  return names;
}

tls_certificate describe(const X509& one) {
  tls_certificate made;
  made.subject = name_of(X509_get_subject_name(&one));
  made.issuer = name_of(X509_get_issuer_name(&one));
  const ASN1_INTEGER* serial = X509_get0_serialNumber(&one);
  made.serial = hexadecimal(ASN1_STRING_get0_data(serial),
                            static_cast<std::size_t>(ASN1_STRING_length(serial)));
  made.names = names_of(one);
  made.not_before = time_of(X509_get0_notBefore(&one));
  made.not_after = time_of(X509_get0_notAfter(&one));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  X509_digest(&one, EVP_sha256(), digest.data(), &bytes);
  made.sha256 = hexadecimal(digest.data(), bytes);
  return made;
}

}  // namespace

std::string tls_stream::alpn() const {
  if (connection_.is == nullptr) return {};
  return connection_.is->look([](SSL& ssl) {
    const unsigned char* chosen = nullptr;
    unsigned int bytes = 0;
    SSL_get0_alpn_selected(&ssl, &chosen, &bytes);
    return chosen == nullptr ? std::string()
                             : std::string(reinterpret_cast<const char*>(chosen), bytes);
  });
}

std::string tls_stream::version() const {
  if (connection_.is == nullptr) return {};
  return connection_.is->look([](SSL& ssl) {
    return std::string(SSL_is_init_finished(&ssl) != 0 ? SSL_get_version(&ssl) : "");
  });
}

std::string tls_stream::cipher() const {
  if (connection_.is == nullptr) return {};
  return connection_.is->look([](SSL& ssl) {
    const char* name = SSL_get_cipher_name(&ssl);
    return std::string(SSL_get_current_cipher(&ssl) == nullptr ? "" : name);
  });
}

bool tls_stream::resumed() const {
  return connection_.is != nullptr &&
         connection_.is->look([](SSL& ssl) { return SSL_session_reused(&ssl) != 0; });
}

std::optional<tls_certificate> tls_stream::peer_certificate() const {
  if (connection_.is == nullptr) return std::nullopt;
  return connection_.is->look([](SSL& ssl) -> std::optional<tls_certificate> {
    const X509* one = SSL_get0_peer_certificate(&ssl);
    if (one == nullptr) return std::nullopt;
    ERR_clear_error();
    tls_certificate made = describe(*one);
    ERR_clear_error();
    return made;
  });
}

}  // namespace troupe
