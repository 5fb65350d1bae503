#include "support/reserved.h"

#include <algorithm>
#include <iterator>

namespace tc {
namespace {

// <math.h>, <stdlib.h>, <string.h>, <stdio.h>, <time.h>, <stdint.h>, <unistd.h>, what the executor and the program define, what
// the program calls its variables, and the targets of CMake and Make.
// clang-format off
constexpr std::string_view kNames[] = {
    "abort", "abs", "access", "acos", "acosh", "alarm", "all", "all_build", "argc", "argv", "asin", "asinh",
    "at", "atan", "atan2", "atanh", "atexit", "atof", "atoi", "atol", "basename", "bcmp", "bcopy", "brk",
    "bsearch", "bytes", "bzero", "calloc", "capture", "cbrt", "ceil", "chdir", "choose", "chown", "clean",
    "clear_now", "clear_states", "clearerr", "clock", "clock_gettime", "close", "close_model", "cmakefiles",
    "copysign", "cos", "cosh", "cpu", "cpus", "crypt", "ctime", "cuda_on_cpu", "daylight", "difftime", "div",
    "download", "dup", "dysize", "edit_cache", "enqueue", "environ", "erf", "erfc", "errno", "execl", "execute",
    "execute_and_keep", "execv", "exit", "exp", "exp2", "expm1", "fabs", "fclose", "fdim", "feof", "ferror",
    "fetch", "fflush", "ffs", "fgetc", "fgets", "file", "fileno", "finite", "fits", "floor", "fma", "fmax",
    "fmin", "fmod", "fopen", "fork", "fpclassify", "fprintf", "fputc", "fputs", "fread", "free", "freopen",
    "frexp", "fscanf", "fseek", "ftell", "fwrite", "gamma", "getc", "getchar", "getenv", "getline", "getopt",
    "getpid", "gets", "getw", "gmtime", "help", "hypot", "i", "ilogb", "in", "index", "inputs", "install",
    "instance", "is_captured", "isinf", "isnan", "j0", "j1", "jn", "jrand48", "kernels", "kill", "labs", "ldexp",
    "ldiv", "lgamma", "link", "list_install_components", "llabs", "lldiv", "llrint", "llround", "localtime",
    "lockf", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "lseek", "main", "makefile", "malloc",
    "memccpy", "memchr", "memcmp", "memcpy", "memmem", "memmove", "memset", "message", "mkdir", "mktemp",
    "mktime", "modf", "nan", "nanosleep", "nearbyint", "next_counts", "nextafter", "nice", "null", "o",
    "open_model", "out", "outputs", "package", "package_source", "pause", "pclose", "perror", "pipe", "popen",
    "pow", "preinstall", "prepare", "printf", "putc", "putchar", "putenv", "puts", "putw", "qsort", "raise",
    "rand", "random", "read", "realloc", "realpath", "rebuild_cache", "remainder", "remove", "remquo", "rename",
    "reset_model", "rewind", "rindex", "rint", "rmdir", "round", "run_model", "run_tests", "s", "scalb",
    "scalbn", "scanf", "scratch", "segments", "select", "setbuf", "setenv", "setsid", "signal", "signbit",
    "signgam", "significand", "sin", "sinh", "sized_axes", "sizes", "sleep", "snprintf", "sprintf", "sqrt",
    "srand", "srandom", "sscanf", "stat", "state_counts", "status", "stderr", "stdin", "stdout", "stime",
    "stpcpy", "strcat", "strchr", "strcmp", "strcoll", "strcpy", "strdup", "strerror", "strlen", "strncat",
    "strncmp", "strncpy", "strrchr", "strsep", "strstr", "strtod", "strtok", "strtol", "strtoll", "strtoul",
    "swab", "symlink", "sync", "system", "tan", "tanh", "tc", "tempnam", "test", "tgamma", "time", "timezone",
    "tmpfile", "tmpnam", "trunc", "truncate", "try", "tzname", "tzset", "ungetc", "unlink", "unsetenv", "upload",
    "usleep", "va_list", "vfork", "vfprintf", "vprintf", "wait", "weight", "weights", "write", "y0", "y1", "yn",
    "zero_check",
};

// Headers of the system that include each other, which the package's NAME.h would stand in front of; and C++'s namespace.
constexpr std::string_view kHeaders[] = {
    "alloca", "arm_neon", "assert", "builtin_types", "byteswap", "channel_descriptor", "common_functions", "complex",
    "cooperative_groups", "cpuid", "crt", "ctype", "device_types", "direct", "dlfcn", "driver_types", "emmintrin",
    "endian", "errno", "fcntl", "features", "fenv", "float", "getopt", "host_config", "host_defines", "immintrin",
    "intrin", "inttypes", "io", "iso646", "libgen", "library_types", "limits", "locale", "malloc", "math",
    "math_constants", "math_functions", "memory", "mm_malloc", "mma", "mmintrin", "netdb", "nmmintrin", "nvrtc",
    "omp", "pmmintrin", "poll", "process", "pthread", "sched", "semaphore", "setjmp", "signal", "smmintrin",
    "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn", "string",
    "strings", "surface_types", "tgmath", "texture_types", "threads", "time", "tmmintrin", "types", "uchar",
    "ucontext", "unistd", "vector_functions", "vector_types", "wchar", "wctype", "windows", "wmmintrin", "x86intrin",
    "xmmintrin", "std",
};
// clang-format on

}  // namespace

bool is_library_name(std::string_view name) {
  auto known = [](std::string_view n) { return std::binary_search(std::begin(kNames), std::end(kNames), n); };
  // expf and expl beside exp
  const bool variant = (name.ends_with('f') || name.ends_with('l')) && known(name.substr(0, name.size() - 1));
  // NAME_OK is POSIX's F_OK, R_OK, W_OK or X_OK; tc_simd.h and others are files of the package.
  const bool access = name.size() == 1 && std::string_view("frwx").find(name[0]) != std::string_view::npos;
  const bool header = std::find(std::begin(kHeaders), std::end(kHeaders), name) != std::end(kHeaders);
  return known(name) || header || variant || access || name.ends_with("_t") || name.ends_with("_dims") ||
         name.starts_with("cuda") || (name.starts_with("tc_") && !name.ends_with("_model"));
}

}  // namespace tc
