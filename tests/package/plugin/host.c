/* Twice: loads each shared object that is named, calls plug() in all of them, and unloads them. */
#include <dlfcn.h>
#include <stdio.h>

#define MOST 8

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
    for (int i = 1; i < count && i <= MOST; ++i) {
      int (*plug)(void);
      *(void**)&plug = dlsym(loaded[i - 1], "plug");
      if (plug == NULL || plug() != 0) {
        fprintf(stderr, "plug() of %s failed\n", names[i]);
        return 2;
      }
    }
    for (int i = 1; i < count && i <= MOST; ++i) dlclose(loaded[i - 1]);
  }
  puts("loaded");
  return 0;
}
