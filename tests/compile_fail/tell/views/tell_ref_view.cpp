// This view refers to a range that the sender keeps. A view that owns its range may travel.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
#include <ranges>
#include <troupe/troupe.hpp>
#include <vector>

struct Reader {
  void read(std::ranges::ref_view<std::vector<int>> all) { sum += all.front(); }
  void read_owned(std::ranges::owning_view<std::vector<int>> all) { sum += all.front(); }
  int sum = 0;
};

void use(troupe::ref<Reader> to, std::vector<int> numbers) {
#ifdef CONTROL
  to.tell<&Reader::read_owned>(std::views::all(std::move(numbers)));
#else
  to.tell<&Reader::read>(std::views::all(numbers));
#endif
}
