#include "stacks/unwinder.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#ifdef TROUPE_TOOL_LIBDW

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include "stacks/method_places.hpp"

#endif

namespace troupe_tool {

#ifdef TROUPE_TOOL_LIBDW

namespace {

constexpr std::size_t frames_max = 256;

template <class Value>
using owned = std::unique_ptr<Value, decltype(&std::free)>;

std::string without_folders(const char* path) {
  const char* const last = std::strrchr(path, '/');
  return last == nullptr ? path : last + 1;
}

// The folder in which the program sees its files, if that is another one than the tool's: a
// container has a root of its own. libdw gives its callbacks nothing of ours, and the tool asks one
// program.
std::string root_of_program;

std::string find_root(int pid) {
  const std::string root = fmt::format("/proc/{}/root", pid);
  struct ::stat theirs = {}, ours = {};
  const bool is_ours = ::stat(root.c_str(), &theirs) != 0 || ::stat("/", &ours) != 0 ||
                       (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
  return is_ours ? "" : root;
}

int find_elf(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, char** file_name,
             Elf** elf) {
  if (root_of_program.empty() || name[0] != '/')
    return ::dwfl_linux_proc_find_elf(module, data, name, base, file_name, elf);
  const std::string path = root_of_program + name;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file >= 0) *file_name = ::strdup(path.c_str());
  return file;
}

constexpr Dwfl_Callbacks callbacks{.find_elf = &find_elf,
                                   .find_debuginfo = &::dwfl_standard_find_debuginfo,
                                   .section_address = nullptr,
                                   .debuginfo_path = nullptr};

// ---- from an address to functions ----

// Compilers other than GCC write no index of addresses: then each unit is asked.
Dwarf_Die* unit_of(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr& bias) {
  if (Dwarf_Die* const found = ::dwfl_module_addrdie(module, address, &bias)) return found;
  Dwarf_Die* unit = nullptr;
  while ((unit = ::dwfl_module_nextcu(module, unit, &bias)) != nullptr) {
    if (::dwarf_haspc(unit, address - bias) > 0) return unit;
  }
  return nullptr;
}

std::string name_of(Dwarf_Die& die) {
  for (const unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    Dwarf_Attribute memory;
    const char* const name = ::dwarf_formstring(::dwarf_attr_integrate(&die, attribute, &memory));
    if (name != nullptr) return demangled(name);
  }
  const char* const name = ::dwarf_diename(&die);
  return name == nullptr ? "(unknown)" : name;
}

struct place {
  std::string file{};
  int line = 0;
};

place place_of(Dwarf_Die* unit, Dwarf_Addr address) {
  Dwarf_Line* const line = ::dwarf_getsrc_die(unit, address);
  int number = 0;
  const char* const file = line == nullptr ? nullptr : ::dwarf_linesrc(line, nullptr, nullptr);
  if (file == nullptr || ::dwarf_lineno(line, &number) != 0) return {};
  return {without_folders(file), number};
}

// Where the function into which this one was inlined calls it.
place call_of(Dwarf_Die* unit, Dwarf_Die& inlined) {
  Dwarf_Attribute memory;
  Dwarf_Word file = 0, line = 0;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (::dwarf_formudata(::dwarf_attr(&inlined, DW_AT_call_file, &memory), &file) != 0 ||
      ::dwarf_formudata(::dwarf_attr(&inlined, DW_AT_call_line, &memory), &line) != 0 ||
      ::dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count)
    return {};
  const char* const path = ::dwarf_filesrc(files, file, nullptr, nullptr);
  if (path == nullptr) return {};
  return {without_folders(path), static_cast<int>(line)};
}

// The scopes of the address, the innermost first, each inside the next one.
std::vector<Dwarf_Die> scopes_of(Dwfl_Module* module, Dwarf_Die* unit, Dwarf_Addr address) {
  Dwarf_Die* found = nullptr;
  // Behind a function that was inlined it lists where that one was written, not where it is.
  const int written = ::dwarf_getscopes(unit, address, &found);
  const owned<Dwarf_Die> first(found, &std::free);
  Dwarf_Addr bias = 0;
  Dwarf* const all = ::dwfl_module_getdwarf(module, &bias);
  Dwarf_Die innermost;
  if (written <= 0 || all == nullptr ||
      ::dwarf_offdie(all, ::dwarf_dieoffset(found), &innermost) == nullptr)
    return {};
  Dwarf_Die* around = nullptr;
  const int count = ::dwarf_getscopes_die(&innermost, &around);
  const owned<Dwarf_Die> second(around, &std::free);
  return count <= 0 ? std::vector<Dwarf_Die>() : std::vector<Dwarf_Die>(around, around + count);
}

std::vector<frame> functions_at(Dwfl* dwfl, Dwarf_Addr address) {
  std::vector<frame> all;
  Dwfl_Module* const module = ::dwfl_addrmodule(dwfl, address);
  if (module == nullptr) return {{fmt::format("{:#x}", address)}};
  GElf_Off offset = 0;
  GElf_Sym symbol;
  const char* const name =
      ::dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
  std::string outermost;
  if (name != nullptr) outermost = demangled(name);
  Dwarf_Addr bias = 0;
  place at;
  if (Dwarf_Die* const unit = unit_of(module, address, bias)) {
    at = place_of(unit, address - bias);
    for (Dwarf_Die& scope : scopes_of(module, unit, address - bias)) {
      const int tag = ::dwarf_tag(&scope);
      if (tag == DW_TAG_subprogram && outermost.empty()) outermost = name_of(scope);
      if (tag == DW_TAG_subprogram) break;
      if (tag != DW_TAG_inlined_subroutine) continue;
      all.push_back({name_of(scope), at.file, at.line});
      at = call_of(unit, scope);
    }
  }
  if (outermost.empty()) {
    const char* const file =
        ::dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    outermost = fmt::format("{:#x} in {}", address, file == nullptr ? "?" : without_folders(file));
  }
  all.push_back({outermost, at.file, at.line});
  return all;
}

// ---- from a stack to addresses ----

// The thread whose stack is asked for; libdw gets it as `void*`.
struct asked_thread {
  const thread_stack* stack = nullptr;
};

pid_t next_thread(Dwfl*, void* data, void** thread_data) {
  if (*thread_data != nullptr) return 0;
  *thread_data = data;
  return static_cast<const asked_thread*>(data)->stack->thread;
}

bool get_thread(Dwfl*, pid_t, void* data, void** thread_data) {
  *thread_data = data;
  return true;
}

bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* data) {
  const thread_stack& stack = *static_cast<const asked_thread*>(data)->stack;
  if (address < stack.stack_pointer) return false;
  const Dwarf_Addr offset = address - stack.stack_pointer;
  if (offset > stack.stack.size() || stack.stack.size() - offset < sizeof *word) return false;
  std::memcpy(word, stack.stack.data() + offset, sizeof *word);
  return true;
}

bool set_registers(Dwfl_Thread* thread, void* data) {
  const thread_stack& stack = *static_cast<const asked_thread*>(data)->stack;
#if defined(__x86_64__)
  constexpr unsigned count = 17;
  if (stack.registers.size() != count) return false;
#else
  constexpr unsigned count = 32;
  if (stack.registers.size() != count + 1) return false;
  ::dwfl_thread_state_register_pc(thread, stack.registers.back());
#endif
  std::vector<Dwarf_Word> words(stack.registers.begin(), stack.registers.begin() + count);
  return ::dwfl_thread_state_registers(thread, 0, count, words.data());
}

constexpr Dwfl_Thread_Callbacks thread_callbacks{.next_thread = &next_thread,
                                                 .get_thread = &get_thread,
                                                 .memory_read = &read_memory,
                                                 .set_initial_registers = &set_registers,
                                                 .detach = nullptr,
                                                 .thread_detach = nullptr};

int add_address(Dwfl_Frame* at, void* data) {
  auto& addresses = *static_cast<std::vector<std::uint64_t>*>(data);
  Dwarf_Addr address = 0;
  bool is_exact = false;
  if (addresses.size() >= frames_max || !::dwfl_frame_pc(at, &address, &is_exact))
    return DWARF_CB_ABORT;
  // Of a caller it is the address behind the call, which may belong to the next line.
  addresses.push_back(address - (is_exact ? 0 : 1));
  return DWARF_CB_OK;
}

std::string reason() {
  const char* const why = ::dwfl_errmsg(-1);
  return why == nullptr ? "no reason is known" : why;
}

}  // namespace

struct unwinder::state {
  explicit state(int pid) : dwfl(::dwfl_begin(&callbacks), &::dwfl_end) {
    root_of_program = find_root(pid);
    ::unsetenv("DEBUGINFOD_URLS");  // libdw would fetch debug information from other hosts
    if (dwfl == nullptr || ::dwfl_linux_proc_report(dwfl.get(), pid) != 0 ||
        ::dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0) {
      throw failure(
          fmt::format("the files of process {} cannot be read: run troupe as its user, or "
                      "as root, where its files can be opened",
                      pid));
    }
    if (!::dwfl_attach_state(dwfl.get(), nullptr, pid, &thread_callbacks, &asked))
      throw failure(fmt::format("the stacks of process {} cannot be read: {}", pid, reason()));
  }

  asked_thread asked;
  std::unique_ptr<Dwfl, decltype(&::dwfl_end)> dwfl;
  std::unordered_map<std::uint64_t, std::vector<frame>> known;  // a profile has few addresses
};

unwinder::unwinder(int pid) : state_(std::make_unique<state>(pid)) {}
unwinder::~unwinder() = default;

std::vector<std::uint64_t> unwinder::addresses_of(const thread_stack& sampled) {
  std::vector<std::uint64_t> addresses;
  state_->asked.stack = &sampled;
  // It ends with an error where the copy of the stack ends; what it has found by then counts.
  ::dwfl_getthread_frames(state_->dwfl.get(), sampled.thread, &add_address, &addresses);
  return addresses;
}

std::vector<frame> unwinder::frames_of(const std::vector<std::uint64_t>& addresses) {
  std::vector<frame> all;
  for (const std::uint64_t address : addresses) {
    auto [found, is_new] = state_->known.try_emplace(address);
    if (is_new) found->second = functions_at(state_->dwfl.get(), address);
    all.insert(all.end(), found->second.begin(), found->second.end());
  }
  return all;
}

std::unordered_map<std::string, std::string> unwinder::places_of(
    const std::set<std::string>& methods) {
  return find_methods(state_->dwfl.get(), methods);
}

#else

struct unwinder::state {};

unwinder::unwinder(int) {
  throw failure(
      "this troupe was built without libdw, which finds the functions of a stack: install "
      "libdw-dev and build it again");
}
unwinder::~unwinder() = default;
std::vector<std::uint64_t> unwinder::addresses_of(const thread_stack&) { return {}; }
std::vector<frame> unwinder::frames_of(const std::vector<std::uint64_t>&) { return {}; }
std::unordered_map<std::string, std::string> unwinder::places_of(const std::set<std::string>&) {
  return {};
}

#endif

}  // namespace troupe_tool
