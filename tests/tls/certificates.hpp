// Certificates that the TLS tests make when they run: an authority, and certificates that it signs.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "troupe/tls/context.hpp"

namespace troupe::test {

struct identity {
  std::string certificate, key;  // in the format PEM
};

// Options of a server, or of a client that must identify itself.
inline tls_options showing(const identity& who) {
  tls_options options;
  options.certificate_pem = who.certificate;
  options.key_pem = who.key;
  return options;
}

struct wanted_certificate {
  std::string names = "DNS:good.test";  // in the form of OpenSSL's configuration
  long from_s = -3600, until_s = 3600;  // seconds from now
  bool authority = false;
  bool elliptic = false;  // P-256, whose signatures have a length of their own each
};

// Ed25519: certificates and signatures have the same length in each run, so that simulated tests
// are repeated, although the keys are others.
inline EVP_PKEY* new_key(bool elliptic = false) {
  char curve[] = "P-256";
  return elliptic ? EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", &curve[0])
                  : EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
}

class authority {
 public:
  explicit authority(const char* name) : key_(new_key()) {
    wanted_certificate root;
    root.names.clear();
    root.authority = true;
    self_ = make(name, root, key_, nullptr);
  }
  // An authority whose certificate another authority signs.
  authority(const char* name, const authority& above) : key_(new_key()) {
    wanted_certificate between;
    between.names.clear();
    between.authority = true;
    self_ = above.make(name, between, key_, nullptr);
  }
  authority(const authority&) = delete;
  authority& operator=(const authority&) = delete;
  ~authority() {
    X509_free(self_);
    EVP_PKEY_free(key_);
  }

  std::string certificate() const { return text_of(self_); }
  identity issue(const wanted_certificate& like = {}) const { return make_identity(like, false); }
  // Signed only by itself.
  identity issue_self_signed(const wanted_certificate& like = {}) const {
    return make_identity(like, true);
  }

 private:
  identity make_identity(const wanted_certificate& like, bool by_itself) const {
    EVP_PKEY* key = new_key(like.elliptic);
    X509* made = make("server", like, key, by_itself ? key : nullptr);
    const identity both{text_of(made), text_of(key)};
    X509_free(made);
    EVP_PKEY_free(key);
    return both;
  }

  X509* make(const char* name, const wanted_certificate& like, EVP_PKEY* key,
             EVP_PKEY* signs_itself) const {
    static long serial = 1000;
    X509* made = X509_new();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(made), like.from_s);
    X509_gmtime_adj(X509_getm_notAfter(made), like.until_s);
    X509_set_pubkey(made, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    const bool root = self_ == nullptr || signs_itself != nullptr;
    X509_set_issuer_name(made, root ? X509_get_subject_name(made) : X509_get_subject_name(self_));
    extend(made, NID_basic_constraints, like.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (!like.names.empty()) extend(made, NID_subject_alt_name, like.names);
    EVP_PKEY* const signs = signs_itself != nullptr ? signs_itself : key_;
    X509_sign(made, signs, EVP_PKEY_is_a(signs, "EC") == 1 ? EVP_sha256() : nullptr);
    return made;
  }
  static void extend(X509* one, int what, const std::string& value) {
    X509_EXTENSION* made = X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
    X509_add_ext(one, made, -1);
    X509_EXTENSION_free(made);
  }
  static std::string text_of(X509* one) {
    return written([one](BIO* to) { PEM_write_bio_X509(to, one); });
  }
  static std::string text_of(EVP_PKEY* one) {
    return written([one](BIO* to) {
      PEM_write_bio_PrivateKey(to, one, nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  template <class Write>
  static std::string written(Write&& how) {
    BIO* to = BIO_new(BIO_s_mem());
    how(to);
    char* text = nullptr;
    const long bytes = BIO_get_mem_data(to, &text);
    std::string all(text, static_cast<std::size_t>(bytes));
    BIO_free(to);
    return all;
  }

  EVP_PKEY* key_;
  X509* self_ = nullptr;
};

}  // namespace troupe::test
