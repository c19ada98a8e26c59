// Files: what is read and written, by each backend, whether or not the system has it in memory, and
// what is refused.
#include <algorithm>
#include <chrono>
#include <memory>

#include "support/faulty_kernel.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr open_options fresh = [] {
  open_options made;
  made.write = made.create = made.truncate = true;
  return made;
}();

class io_files : public io_conformance {
 protected:
  // Runs the program twice: with the machine's own disk, where every operation completes at once,
  // and with one that never has anything in memory.
  template <class Make>
  void run(Make make) {
    const int before = open_files();
    for (const bool slow_disk : {false, true}) {
      SCOPED_TRACE(slow_disk ? "slow disk" : "in memory");
      faulty_kernel slow(call::close, -1, 0);
      std::optional<io::replaced_kernel> replaced;
      if (slow_disk) replaced.emplace(slow);
      runtime rt(options());
      rt.spawn(make(rt));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
  }
  scratch folder;
};

TEST_P(io_files, what_was_written_is_read) {
  auto program = [this](runtime&) -> task<> {
    const std::string path = folder / "text";
    {
      file out = co_await file::open(path, fresh);
      co_await out.write_all("hello, ");
      co_await out.write_all(
          std::string("world of files, whose text is too long for a string itself"));
      co_await out.fdatasync();
      co_await out.write_all_at(7, "World");
      co_await out.fsync();
      co_await out.close();
      EXPECT_FALSE(out.is_open());
    }
    file in = co_await file::open(path);
    std::array<char, 12> text;
    co_await in.read_exact_at(0, text);
    EXPECT_EQ(std::string_view(text.data(), text.size()), "hello, World");
    std::string all;
    for (;;) {
      std::array<char, 5> part;
      const std::size_t bytes = co_await in.read(part);
      if (bytes == 0) break;
      all.append(part.data(), bytes);
    }
    EXPECT_EQ(all, scratch::text_of(path));
    const std::uint64_t size = co_await in.size();
    EXPECT_EQ(size, all.size());
    const std::size_t behind = co_await in.read_at(size + 5, text);
    EXPECT_EQ(behind, 0u);
    const file_status known = co_await in.status();
    EXPECT_TRUE(known.is_regular && !known.is_directory);
    EXPECT_LT(std::chrono::abs(std::chrono::system_clock::now() - known.modified), 1h);
  };
  run(program);
}

TEST_P(io_files, a_megabyte_goes_through_in_whole) {
  auto program = [this](runtime&) -> task<> {
    const std::string path = folder / "great";
    std::string bytes(1 << 20, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 / 7);
    file both = co_await file::open(path, fresh);
    co_await both.write_all(bytes);
    std::string back(bytes.size(), 'x');
    co_await both.read_exact_at(0, std::span<char>(back));
    EXPECT_TRUE(back == bytes);
  };
  run(program);
}

TEST_P(io_files, what_is_appended_goes_to_the_end) {
  auto program = [this](runtime&) -> task<> {
    const std::string path = folder.put("log", "one\n");
    open_options end;
    end.read = false;
    end.write = end.append = true;
    file a = co_await file::open(path, end);
    file b = co_await file::open(path, end);
    co_await a.write_all("two\n");
    co_await b.write_all("three\n");
    co_await a.write_all("four\n");
    EXPECT_EQ(scratch::text_of(path), "one\ntwo\nthree\nfour\n");
  };
  run(program);
}

// Returns the error of an operation that is refused.
template <class Act>
task<std::string> refusal(Act act) {
  try {
    co_await act();
  } catch (const io_error& e) {
    co_return std::string(e.what());
  } catch (const option_error& e) {
    co_return std::string(e.what());
  } catch (const end_of_file& e) {
    co_return std::string(e.what());
  }
  co_return std::string("nothing was refused");
}

TEST_P(io_files, a_refusal_names_the_path_and_the_reason) {
  auto opens = [](std::string path, open_options chosen) -> task<> {
    file one = co_await file::open(path, chosen);
  };
  auto program = [this, &opens](runtime&) -> task<> {
    const std::string there = folder.put("there", "12345"), missing = folder / "missing",
                      itself = folder / ".";
    const auto expect = [](std::string said, std::string path, std::string reason) {
      EXPECT_NE(said.find(path), std::string::npos) << said;
      EXPECT_NE(said.find(reason), std::string::npos) << said;
    };
    auto no_such = [&] { return opens(missing, {}); };
    std::string said = co_await refusal(std::move(no_such));
    expect(said, missing, "No such file");
    open_options only_new = fresh;
    only_new.exclusive = true;
    auto exists = [&] { return opens(there, only_new); };
    said = co_await refusal(std::move(exists));
    expect(said, there, "exists");
    EXPECT_EQ(scratch::text_of(there), "12345");
    auto folder_to_write = [&] { return opens(itself, fresh); };
    said = co_await refusal(std::move(folder_to_write));
    expect(said, itself, "directory");
    auto reads_folder = [&]() -> task<> {
      file one = co_await file::open(itself);
      const file_status known = co_await one.status();
      EXPECT_TRUE(known.is_directory);
      std::array<char, 8> none;
      co_await one.read(none);
    };
    said = co_await refusal(std::move(reads_folder));
    expect(said, itself, "directory");
    auto reads_too_much = [&]() -> task<> {
      file one = co_await file::open(there);
      std::array<char, 8> more;
      try {
        co_await one.read_exact_at(2, more);
      } catch (const end_of_file& e) {
        EXPECT_EQ(e.bytes(), 3u);
        throw;
      }
    };
    said = co_await refusal(std::move(reads_too_much));
    expect(said, there, "after 3 bytes");
    open_options nonsense;
    nonsense.truncate = true;
    auto contradicts = [&] { return opens(there, nonsense); };
    said = co_await refusal(std::move(contradicts));
    expect(said, there, "need write");
    auto has_a_zero = [&] { return opens(there + std::string("\0x", 2), {}); };
    said = co_await refusal(std::move(has_a_zero));
    expect(said, there, "no zero");
    auto writes_what_is_read = [&]() -> task<> {
      file one = co_await file::open(there);
      co_await one.write_all("x");
    };
    said = co_await refusal(std::move(writes_what_is_read));
    expect(said, there, "Bad file descriptor");
    file closed = co_await file::open(there);
    co_await closed.close();
    bool refused = false;
    try {
      co_await closed.fsync();
    } catch (const usage_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  };
  run(program);
}

// Each of these offsets is refused, and none of them is taken for the file's position.
TEST_P(io_files, an_offset_that_no_file_has_is_refused) {
  auto program = [this](runtime&) -> task<> {
    open_options both = fresh;
    both.read = true;
    file text = co_await file::open(folder / "text", both);
    co_await text.write_all_at(0, "unchanged");
    std::array<char, 4> some;
    int refused = 0;
    for (const std::uint64_t offset :
         {~std::uint64_t{0}, ~std::uint64_t{0} - 1, std::uint64_t{1} << 63}) {
      try {
        co_await text.read_at(offset, some);
      } catch (const io_error& e) {
        refused += e.code() == std::errc::invalid_argument ? 1 : 0;
      }
      try {
        co_await text.write_all_at(offset, "lost");
      } catch (const io_error& e) {
        refused += e.code() == std::errc::invalid_argument ? 1 : 0;
      }
    }
    EXPECT_EQ(refused, 6);
    std::array<char, 20> all;
    const std::size_t bytes = co_await text.read_at(0, all);
    EXPECT_EQ(std::string_view(all.data(), bytes), "unchanged");
  };
  run([&](runtime& rt) { return program(rt); });
}

// A named pipe to which no process writes holds no thread.
TEST_P(io_files, a_named_pipe_is_not_waited_for) {
  auto program = [this](runtime&) -> task<> {
    const std::string path = folder / "fifo";
    static_cast<void>(::mkfifo(path.c_str(), 0600));
    file one = co_await file::open(path);
    open_options other;
    other.write = true;
    other.read = false;
    file writer = co_await file::open(path, other);
    std::array<char, 8> none;
    bool refused = false;
    try {
      co_await one.read(none).timeout(2ms);
    } catch (const timed_out&) {
      refused = true;  // the operation waits in the ring, which holds no thread
    } catch (const io_error& e) {
      refused = e.code() == std::errc::resource_unavailable_try_again ||
                e.code() == std::errc::invalid_seek;
    }
    EXPECT_TRUE(refused);
  };
  run(program);
}

TEST_P(io_files, any_number_of_reads_are_under_way_at_a_time) {
  constexpr std::size_t parts = 100, bytes_each = 1'000;
  auto reads = [](std::shared_ptr<file> from, std::size_t part, std::atomic<int>& right) -> task<> {
    std::array<char, bytes_each> text;
    co_await from->read_exact_at(part * bytes_each, text);
    const auto wanted = static_cast<char>('a' + part % 26);
    right += std::ranges::all_of(text, [wanted](char c) { return c == wanted; }) ? 1 : 0;
  };
  std::atomic<int> right{0};
  auto program = [&](runtime& rt) -> task<> {
    std::string text;
    for (std::size_t part = 0; part < parts; ++part)
      text.append(bytes_each, static_cast<char>('a' + part % 26));
    const std::string path = folder.put("parts", text);
    file opened = co_await file::open(path);
    auto shared = std::make_shared<file>(std::move(opened));
    for (std::size_t part = 0; part < parts; ++part) rt.spawn(reads(shared, part, right));
  };
  run(program);
  EXPECT_EQ(right.load(), 2 * static_cast<int>(parts));
}

}  // namespace

TROUPE_IO_TEST_EACH(io_files);

}  // namespace troupe::test
