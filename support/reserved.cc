#include "support/reserved.h"

#include <algorithm>
#include <iterator>

namespace tc {
namespace {

// <math.h>, <stdlib.h>, <string.h>, <stdio.h>, <time.h>, <stdint.h>, <unistd.h>, and what the executor defines.
constexpr std::string_view kNames[] = {
    "abort", "abs", "access", "acos", "acosh", "alarm", "asin", "asinh", "at", "atan", "atan2", "atanh", "atexit",
    "atof", "atoi", "atol", "basename", "bcmp", "bcopy", "brk", "bsearch", "bzero", "calloc", "capture", "cbrt",
    "ceil", "chdir", "chown", "clearerr", "clock", "close", "copysign", "cos", "cosh", "crypt", "ctime", "daylight",
    "difftime", "div", "download", "dup", "dysize", "enqueue", "environ", "erf", "erfc", "errno", "execl",
    "execute", "execv", "exit", "exp", "exp2", "expm1", "fabs", "fclose", "fdim", "feof", "ferror", "fetch",
    "fflush", "ffs", "fgetc", "fgets", "file", "fileno", "finite", "fits", "floor", "fma", "fmax", "fmin", "fmod",
    "fopen", "fork", "fpclassify", "fprintf", "fputc", "fputs", "fread", "free", "freopen", "frexp", "fscanf",
    "fseek", "ftell", "fwrite", "gamma", "getc", "getchar", "getenv", "getline", "getopt", "getpid", "gets", "getw",
    "gmtime", "hypot", "ilogb", "index", "isinf", "isnan", "j0", "j1", "jn", "jrand48", "kill", "labs", "ldexp",
    "ldiv", "lgamma", "link", "llabs", "lldiv", "llrint", "llround", "localtime", "lockf", "log", "log10", "log1p",
    "log2", "logb", "lrint", "lround", "lseek", "main", "malloc", "memccpy", "memchr", "memcmp", "memcpy", "memmem",
    "memmove", "memset", "message", "mktemp", "mktime", "modf", "nan", "nanosleep", "nearbyint", "nextafter",
    "nice", "null", "pause", "pclose", "perror", "pipe", "popen", "pow", "prepare", "printf", "putc", "putchar",
    "putenv", "puts", "putw", "qsort", "raise", "rand", "random", "read", "realloc", "realpath", "remainder",
    "remove", "remquo", "rename", "rewind", "rindex", "rint", "rmdir", "round", "scalb", "scalbn", "scanf",
    "scratch", "segments", "select", "setbuf", "setenv", "setsid", "signal", "signbit", "signgam", "significand",
    "sin", "sinh", "sleep", "snprintf", "sprintf", "sqrt", "srand", "srandom", "sscanf", "status", "stderr",
    "stdin", "stdout", "stime", "stpcpy", "strcat", "strchr", "strcmp", "strcoll", "strcpy", "strdup", "strerror",
    "strlen", "strncat", "strncmp", "strncpy", "strrchr", "strsep", "strstr", "strtod", "strtok", "strtol",
    "strtoul", "swab", "symlink", "sync", "system", "tan", "tanh", "tc", "tempnam", "tgamma", "time", "timezone",
    "tmpfile", "tmpnam", "trunc", "truncate", "try", "tzname", "tzset", "ungetc", "unlink", "unsetenv", "upload",
    "usleep", "vfork", "vprintf", "wait", "weight", "write", "y0", "y1", "yn",
};

}  // namespace

bool is_library_name(std::string_view name) {
  return std::binary_search(std::begin(kNames), std::end(kNames), name) || name.ends_with("_t") || name.starts_with("cuda");
}

}  // namespace tc
