#include "observe_page/metrics.hpp"

#include <array>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe::observe_page {
namespace {

using nlohmann::json;

// The shortest text that reads back as the same number.
std::string text_of(double value) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

std::string escaped(const std::string& value) {
  std::string text;
  for (const char one : value) {
    if (one == '\\' || one == '"') text += '\\';
    if (one == '\n') {
      text += "\\n";
    } else {
      text += one;
    }
  }
  return text;
}

// `name{a="b",c="d"}`, from pairs.
using labels = std::vector<std::pair<const char*, std::string>>;
std::string with_labels(const std::string& name, const labels& all) {
  std::string text = name;
  for (const auto& [key, value] : all)
    text +=
        (text.size() == name.size() ? "{" : ",") + std::string(key) + "=\"" + escaped(value) + "\"";
  return all.empty() ? text : text + "}";
}

labels plus(const labels& all, const char* key, std::string value = {}) {
  labels more;
  more.reserve(all.size() + 1);
  for (const auto& one : all) more.push_back(one);
  more.emplace_back(key, std::move(value));
  return more;
}

class metrics_text {
 public:
  void family(const std::string& name, const char* type, const char* help) {
    text_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  void sample(const std::string& name, const labels& all, double value) {
    text_ += with_labels(name, all) + " " + text_of(value) + "\n";
  }
  std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

struct number {
  const char* key;  // in the summary
  const char* name;
  const char* type;
  const char* help;
};

constexpr std::array of_runtime{
    number{"actors", "troupe_actors", "gauge", "Actors and tasks that have not ended."},
    number{"suspended", "troupe_suspended_turns", "gauge", "Turns and tasks that wait."},
    number{"dead_letters", "troupe_dead_letters_total", "counter",
           "Messages that no actor handled."},
    number{"failures", "troupe_failures_total", "counter",
           "Exceptions that left handlers and tasks."},
    number{"failures_dropped", "troupe_failures_dropped_total", "counter",
           "Failures that were not kept."},
    number{"errors_dropped", "troupe_errors_dropped_total", "counter",
           "Exceptions of results for which no code waited any longer."},
    number{"lazies_queued", "troupe_lazies_queued", "gauge", "Lazies that wait for a thread."},
    number{"resource_bytes", "troupe_resource_bytes", "gauge", "Bytes that resources occupy."},
    number{"io_waits", "troupe_io_waits_total", "counter", "I/O operations that had to wait."},
    number{"io_in_flight", "troupe_io_in_flight", "gauge", "I/O operations that are under way."},
    number{"io_open", "troupe_io_descriptors", "gauge",
           "Descriptors with at least one operation so far."},
    number{"timers_armed", "troupe_timers_armed", "gauge", "Timers that are armed."},
    number{"blocking_calls", "troupe_blocking_calls", "gauge",
           "Blocking calls that run or wait for a thread."}};

constexpr std::array of_log{
    number{"lines", "troupe_log_lines_total", "counter", "Lines that were logged."},
    number{"dropped", "troupe_log_dropped_total", "counter",
           "Lines of the log that were dropped, because they came faster than they were written."}};

constexpr std::array of_worker{
    number{"turns", "troupe_worker_turns_total", "counter", "Turns that the worker has run."},
    number{"messages", "troupe_worker_messages_total", "counter",
           "Messages that the worker has handled, and coroutines that it has resumed."},
    number{"steals", "troupe_worker_steals_total", "counter",
           "How often the worker took work from another one."},
    number{"parks", "troupe_worker_parks_total", "counter", "How often the worker parked."},
    number{"queued", "troupe_worker_queued", "gauge", "Runnables in the worker's queue."}};

constexpr std::array of_class{
    number{"alive", "troupe_class_actors", "gauge", "Actors of the class that have not ended."},
    number{"spawned", "troupe_class_spawned_total", "counter", "Actors of the class that began."},
    number{"suspended", "troupe_class_suspended_turns", "gauge", "Turns of the class that wait."}};

constexpr std::array of_handler{
    number{"messages", "troupe_handler_messages_total", "counter", "Messages handled."},
    number{"resumed", "troupe_handler_resumptions_total", "counter",
           "How often the handler's coroutine was resumed."},
    number{"failures", "troupe_handler_failures_total", "counter",
           "Exceptions that left the handler."}};

constexpr std::array of_timers{
    number{"armed", "troupe_timers_armed_total", "counter", "Timers that were armed, by source."},
    number{"expired", "troupe_timers_expired_total", "counter", "Timers that expired."},
    number{"cancelled", "troupe_timers_cancelled_total", "counter",
           "Timers that were cancelled before they expired."}};

constexpr std::array of_operations{
    number{"done", "troupe_io_operations_total", "counter", "I/O operations that ended, by kind."},
    number{"bytes", "troupe_io_bytes_total", "counter", "Bytes that they transferred."},
    number{"errors", "troupe_io_errors_total", "counter", "Those that the system refused."},
    number{"cancelled", "troupe_io_cancelled_total", "counter", "Those that were cancelled."}};

constexpr std::array of_lazies{number{"computed", "troupe_lazies_computed_total", "counter",
                                      "Lazies that were computed, by the type of their function."},
                               number{"stolen", "troupe_lazies_stolen_total", "counter",
                                      "Lazies that a thread took from another one."}};

constexpr std::array of_durable{
    number{"turns", "troupe_durable_turns_total", "counter",
           "Handlers of durable actors whose effects are stored."},
    number{"messages", "troupe_durable_messages_total", "counter",
           "Messages that came to durable actors."},
    number{"failed_turns", "troupe_durable_failed_turns_total", "counter",
           "Handlers of durable actors that threw."},
    number{"retries", "troupe_durable_retries_total", "counter",
           "How often a message waits to be handled once more."},
    number{"dead_letters", "troupe_durable_dead_letters_total", "counter",
           "Messages that failed too often."},
    number{"reminders", "troupe_durable_reminders_total", "counter",
           "Reminders whose message was sent."},
    number{"failed_commits", "troupe_durable_failed_commits_total", "counter",
           "Transactions that were not stored."},
    number{"loads", "troupe_durable_loads_total", "counter", "Actors read from the store."},
    number{"put_away", "troupe_durable_put_away_total", "counter",
           "Objects that were put away, since others needed the memory or they were idle."},
    number{"actors", "troupe_durable_actors", "gauge", "Durable actors in memory."},
    number{"waiting", "troupe_durable_waiting_messages", "gauge",
           "Messages in memory that wait or are being handled."},
    number{"away", "troupe_durable_away", "gauge",
           "1 if the last transaction failed and none was stored since."}};

constexpr std::array of_http{
    number{"connections", "troupe_http_connections", "gauge", "Connections of the server."},
    number{"kept_bytes", "troupe_http_kept_bytes", "gauge",
           "Memory that the server keeps for its clients."},
    number{"kept_descriptors", "troupe_http_kept_descriptors", "gauge",
           "Descriptors of its connections and of files that it sends."},
    number{"clients", "troupe_http_clients", "gauge", "Clients for which it keeps something."},
    number{"largest_client_bytes", "troupe_http_largest_client_bytes", "gauge",
           "What it keeps for the client for which it keeps most."},
    number{"over_budget", "troupe_http_over_budget_total", "counter",
           "Connections and streams that ended since too much was kept for their client."}};

constexpr std::array of_cluster{
    number{"members", "troupe_cluster_members", "gauge", "Nodes of the cluster."},
    number{"shards", "troupe_cluster_shards", "gauge", "Shards that this node owns."},
    number{"actors", "troupe_cluster_actors", "gauge", "Actors of the cluster in memory here."},
    number{"made", "troupe_cluster_made_total", "counter", "Actors that were made here."},
    number{"put_away", "troupe_cluster_put_away_total", "counter",
           "Actors that were put away, since they were idle or too many."},
    number{"local", "troupe_cluster_local_messages_total", "counter",
           "Messages for actors that were here."},
    number{"sent", "troupe_cluster_sent_messages_total", "counter", "Messages to other nodes."},
    number{"served", "troupe_cluster_served_messages_total", "counter", "Messages of other nodes."},
    number{"sent_again", "troupe_cluster_sent_again_total", "counter",
           "Messages that were sent once more, since the actor had moved."},
    number{"failed", "troupe_cluster_failed_messages_total", "counter",
           "Messages to other nodes that failed, for another reason than their handlers."},
    number{"waiting", "troupe_cluster_waiting_messages", "gauge",
           "Messages that wait for other nodes."},
    number{"renewals", "troupe_cluster_renewals_total", "counter",
           "Renewals of the leases of this node."},
    number{"failed_renewals", "troupe_cluster_failed_renewals_total", "counter",
           "Renewals that failed."},
    number{"shards_lost", "troupe_cluster_lost_shards_total", "counter",
           "Shards that were given up, since they could not be renewed or drained in time."},
    number{"joined", "troupe_cluster_joined", "gauge", "1 if the node has joined."},
    number{"connected", "troupe_cluster_connected", "gauge",
           "1 if the node has a connection to a NATS server, or is alone."}};

using each_element = std::function<void(const std::function<void(const labels&, const json&)>&)>;

void add(metrics_text& to, std::span<const number> numbers, const each_element& for_each) {
  for (const number& one : numbers) {
    to.family(one.name, one.type, one.help);
    for_each([&](const labels& all, const json& element) {
      // one that a program of an earlier version does not have
      if (element.contains(one.key)) to.sample(one.name, all, element[one.key].get<double>());
    });
  }
}

constexpr double ns_per_second = 1e9;

// Times of samples, with the sum and the count that they stand for.
void add_times(metrics_text& to, const each_element& for_each_handler) {
  const std::string name = "troupe_handler_duration_seconds";
  to.family(name, "summary", "Time that one message or one resumption took, by samples.");
  for_each_handler([&](const labels& all, const json& of) {
    for (const auto& [quantile, key] : {std::pair{"0.5", "busy_p50_ns"}, {"0.99", "busy_p99_ns"}}) {
      to.sample(name, plus(all, "quantile", quantile), of[key].get<double>() / ns_per_second);
    }
    to.sample(name + "_sum", all, of["busy_ns"].get<double>() / ns_per_second);
    to.sample(name + "_count", all, of["messages"].get<double>() + of["resumed"].get<double>());
  });
  const std::string wait = "troupe_handler_wait_seconds";
  to.family(wait, "gauge", "How long messages lay in the mailbox, by samples.");
  for_each_handler([&](const labels& all, const json& of) {
    for (const auto& [quantile, key] : {std::pair{"0.5", "wait_p50_ns"}, {"0.99", "wait_p99_ns"}}) {
      to.sample(wait, plus(all, "part", quantile), of[key].get<double>() / ns_per_second);
    }
  });
}

void add_quantiles(metrics_text& to, const std::string& name, const char* help,
                   const each_element& for_each) {
  to.family(name, "gauge", help);
  for_each([&](const labels& all, const json& of) {
    for (const auto& [part, key] : {std::pair{"0.5", "p50_ns"}, {"0.99", "p99_ns"}})
      to.sample(name, plus(all, "part", part), of[key].get<double>() / ns_per_second);
  });
}

void add_operations_and_lazies(metrics_text& to, const each_element& operations,
                               const each_element& lazies) {
  add(to, of_operations, operations);
  add_quantiles(to, "troupe_io_seconds",
                "Time from the start of an operation to its end, by samples.", operations);
  add(to, of_lazies, lazies);
  add_quantiles(to, "troupe_lazy_seconds", "Time that one lazy took, by samples.", lazies);
}

struct distribution {
  const char* name;
  const char* help;
  const char* sum;  // in the summary, as those below
  std::array<std::pair<const char*, const char*>, 2> quantiles;
  double unit;
};
constexpr std::array of_commits{
    distribution{"troupe_durable_commit_seconds",
                 "Time from the begin of a transaction until it was stored.",
                 "commit_ns",
                 {{{"0.5", "commit_p50_ns"}, {"0.99", "commit_p99_ns"}}},
                 ns_per_second},
    distribution{"troupe_durable_commit_turns",
                 "Turns that shared a transaction.",
                 "turns",
                 {{{"0.5", "commit_p50_turns"}, {"0.99", "commit_p99_turns"}}},
                 1}};

void add_durable(metrics_text& to, const each_element& for_each_store) {
  add(to, of_durable, for_each_store);
  for (const distribution& one : of_commits) {
    const std::string name = one.name;
    to.family(name, "summary", one.help);
    for_each_store([&](const labels& all, const json& of) {
      for (const auto& [quantile, key] : one.quantiles)
        to.sample(name, plus(all, "quantile", quantile), of[key].get<double>() / one.unit);
      to.sample(name + "_sum", all, of[one.sum].get<double>() / one.unit);
      to.sample(name + "_count", all, of["commits"].get<double>());
    });
  }
}

// The elements of a list that each runtime has, each named by one of its members.
each_element elements_of(const json& runtimes, const char* list, const char* label) {
  return [&runtimes, list, label](const auto& look) {
    for (std::size_t i = 0; i < runtimes.size(); ++i) {
      if (!runtimes[i].contains(list)) continue;  // of an earlier version
      for (const json& one : runtimes[i][list]) {
        if (one.size() == 1) continue;  // a component that has just gone
        look(labels{{"runtime", std::to_string(i)}, {label, one[label].get<std::string>()}}, one);
      }
    }
  };
}

std::string metrics_of(const json& summary) {
  const json& runtimes = summary["runtimes"];
  const auto for_each_runtime = [&](const auto& look) {
    for (std::size_t i = 0; i < runtimes.size(); ++i)
      look(labels{{"runtime", std::to_string(i)}}, runtimes[i]);
  };
  const auto members = [&](const char* key) -> each_element {
    return [&, key](const auto& look) {
      for_each_runtime([&](const labels& all, const json& of) { look(all, of[key]); });
    };
  };
  const auto workers = [&](const auto& look) {
    for_each_runtime([&](const labels& outer, const json& of) {
      labels all = plus(outer, "worker");
      for (std::size_t i = 0; i < of["workers"].size(); ++i) {
        all.back().second = std::to_string(i + 1);
        look(all, of["workers"][i]);
      }
      all.back().second = "others";
      look(all, of["others"]);
    });
  };
  const auto classes = [&](const auto& look) {
    for_each_runtime([&](const labels& outer, const json& of) {
      labels all = plus(outer, "class");
      for (const json& one : of["classes"]) {
        all.back().second = one["class"].get<std::string>();
        look(all, one);
      }
    });
  };
  const auto handlers = [&](const auto& look) {
    classes([&](const labels& outer, const json& of) {
      labels all = plus(outer, "handler");
      for (const json& one : of["handlers"]) {
        all.back().second = one["handler"].get<std::string>();
        look(all, one);
      }
    });
  };
  metrics_text text;
  const auto log = [&](const auto& look) {
    if (summary.contains("log")) look(labels{}, summary["log"]);
  };
  add(text, of_log, log);
  text.family("troupe_up_seconds", "gauge", "Time since the runtime was made.");
  for_each_runtime([&](const labels& all, const json& of) {
    text.sample("troupe_up_seconds", all, of["up_ns"].get<double>() / ns_per_second);
  });
  add(text, of_runtime, members("metrics"));
  text.family("troupe_warnings_total", "counter", "Findings that are worth a warning, by kind.");
  for_each_runtime([&](labels all, const json& of) {
    all.emplace_back("kind", "");
    for (const auto& [kind, count] : of["warning_counts"].items()) {
      all.back().second = kind;
      text.sample("troupe_warnings_total", all, count.get<double>());
    }
  });
  add(text, of_timers, elements_of(runtimes, "timers", "source"));
  add_operations_and_lazies(text, elements_of(runtimes, "io", "operation"),
                            elements_of(runtimes, "lazies", "lazy"));
  add_durable(text, elements_of(runtimes, "durable", "store"));
  add(text, of_http, elements_of(runtimes, "http", "server"));
  add(text, of_cluster, elements_of(runtimes, "cluster", "node"));
  add(text, of_worker, workers);
  add(text, of_class, classes);
  add(text, of_handler, handlers);
  add_times(text, handlers);
  return std::move(text).take();
}

}  // namespace

std::string as_metrics(std::string_view summary) {
  const json read = json::parse(summary, nullptr, false);
  if (!read.is_object() || !read.contains("runtimes"))
    throw std::runtime_error("troupe: the program did not answer with its summary");
  return metrics_of(read);
}

}  // namespace troupe::observe_page
