// issued_user: credentials of NATS that tests make when they run, with an operator and an account.
#pragma once

#include <string>

#include "nats/protocol/nkey.hpp"

namespace troupe::test {

class issued_user {
 public:
  explicit issued_user(const nats::nkey& user)
      : of_operator_(jwt(oper_, claims(oper_, oper_, R"("type":"operator",)"))),
        of_account_(
            jwt(oper_,
                claims(oper_, account_,
                       R"("limits":{"subs":-1,"data":-1,"payload":-1,"imports":-1,)"
                       R"("exports":-1,"wildcards":true,"conn":-1,"leaf":-1},"type":"account",)"))),
        of_user_(jwt(account_, claims(account_, user,
                                      R"("pub":{},"sub":{},"subs":-1,"data":-1,"payload":-1,)"
                                      R"("type":"user",)"))) {}

  // Lines for a server that knows the account.
  std::string server_config() const {
    return "operator: " + of_operator_ + "\nresolver: MEMORY\nresolver_preload: { " +
           account_.public_key() + ": " + of_account_ + " }";
  }
  // A file of credentials of the user, with that key.
  std::string file(const nats::nkey& key) const {
    return "-----BEGIN NATS USER JWT-----\n" + of_user_ +
           "\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" + key.seed() +
           "\n------END USER NKEY SEED------\n";
  }

 private:
  static std::string jwt(const nats::nkey& by, const std::string& claims) {
    const std::string text =
        nats::base64url(R"({"typ":"JWT","alg":"ed25519-nkey"})") + "." + nats::base64url(claims);
    return text + "." + nats::base64url(by.sign(text));
  }
  static std::string claims(const nats::nkey& by, const nats::nkey& of, const std::string& is) {
    return R"({"jti":"X","iat":1700000000,"iss":")" + by.public_key() + R"(","name":"n","sub":")" +
           of.public_key() + R"(","nats":{)" + is + R"("version":2}})";
  }

  const nats::nkey oper_{nats::key_kind::oper, {1}}, account_{nats::key_kind::account, {2}};
  const std::string of_operator_, of_account_, of_user_;
};

}  // namespace troupe::test
