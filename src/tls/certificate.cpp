#include "tls/certificate.hpp"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <span>

#include "base/text/hex.hpp"
#include "tls/library.hpp"

namespace troupe::tls {
namespace {

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  std::string text;
  base::append_hex(text, std::span(bytes, count));
  return text;
}

std::string name_of(const X509_NAME* name) {
  const bio_ptr printed(BIO_new(BIO_s_mem()));
  if (!printed) throw std::bad_alloc();
  X509_NAME_print_ex(printed.get(), name, 0,
                     XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB));
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(printed.get(), &text);
  return {text, static_cast<std::size_t>(bytes)};
}

std::chrono::sys_seconds time_of(const ASN1_TIME* when) {
  std::tm parts{};
  if (when == nullptr || ASN1_TIME_to_tm(when, &parts) != 1) return {};
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

std::string text_of(const ASN1_STRING* source) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(source)),
          static_cast<std::size_t>(ASN1_STRING_length(source))};
}

// `kind`: GEN_DNS or GEN_IPADD; 0 means both.
std::vector<std::string> names_of(const X509& certificate, int kind = 0) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, freed_by<&GENERAL_NAMES_free>> all(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (kind != 0 && name->type != kind) continue;
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

std::string common_name_of(const X509& certificate) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return {};
  return text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

}  // namespace

std::vector<std::string> hosts_of(const X509& certificate) {
  std::vector<std::string> names = names_of(certificate, GEN_DNS);
  if (names.empty()) names.push_back(common_name_of(certificate));
  return names;
}

tls_certificate describe(const X509& certificate) {
  tls_certificate described;
  described.subject = name_of(X509_get_subject_name(&certificate));
  described.issuer = name_of(X509_get_issuer_name(&certificate));
  const ASN1_INTEGER* serial = X509_get0_serialNumber(&certificate);
  described.serial = hexadecimal(ASN1_STRING_get0_data(serial),
                                 static_cast<std::size_t>(ASN1_STRING_length(serial)));
  described.names = names_of(certificate);
  described.not_before = time_of(X509_get0_notBefore(&certificate));
  described.not_after = time_of(X509_get0_notAfter(&certificate));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  X509_digest(&certificate, EVP_sha256(), digest.data(), &bytes);
  described.sha256 = hexadecimal(digest.data(), bytes);
  return described;
}

}  // namespace troupe::tls
