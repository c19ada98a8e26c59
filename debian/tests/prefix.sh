# Read by the tests: lets the compiler, CMake and the loader look into TROUPE_PREFIX, and pkg-config nowhere else, since
# a machine that builds the packages has modules that their users lack.
if [ -n "${TROUPE_PREFIX:-}" ]; then
  libraries=$(dirname "$(find "$TROUPE_PREFIX/usr/lib" -name 'libtroupe.so.0' | head -n 1)")
  export CMAKE_PREFIX_PATH="$TROUPE_PREFIX/usr"
  export PKG_CONFIG_LIBDIR="$libraries/pkgconfig"
  export LD_LIBRARY_PATH="$libraries"
  export PATH="$TROUPE_PREFIX/usr/bin:$PATH"
fi
