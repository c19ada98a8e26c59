/* Twice: loads each shared object that is named, calls plug() in all of them, then that of the last
   one while the first one has a runtime, and unloads them. */
#include <dlfcn.h>
#include <stdio.h>

#define MOST 8

typedef int (*plugin)(void);

static void* find(void* in, const char* name) {
  void* found = dlsym(in, name);
  if (found == NULL) fprintf(stderr, "%s\n", dlerror());
  return found;
}

static int call_all(void** loaded, int count) {
  plugin plug = NULL;
  for (int i = 0; i < count; ++i) {
    *(void**)&plug = find(loaded[i], "plug");
    if (plug == NULL || plug() != 0) return 2;
  }
  int (*around)(plugin) = NULL;
  *(void**)&around = find(loaded[0], "plug_around");
  return around == NULL || around(plug) != 0 ? 3 : 0;
}

int main(int count, char** names) {
  void* loaded[MOST];
  for (int round = 0; round < 2; ++round) {
    for (int i = 1; i < count && i <= MOST; ++i) {
      loaded[i - 1] = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
      if (loaded[i - 1] == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
      }
    }
    const int failed = call_all(loaded, count - 1);
    if (failed != 0) return failed;
    for (int i = 1; i < count && i <= MOST; ++i) dlclose(loaded[i - 1]);
  }
  puts("loaded");
  return 0;
}
