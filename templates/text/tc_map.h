/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* A file as memory: mapped where the system can do that, else read. To be included first. */
#ifndef TC_MAP_H
#define TC_MAP_H
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L
#endif
#include <stddef.h>
#include <stdint.h>
#if defined(__unix__) || defined(__APPLE__)
#  define TC_HAS_MMAP
#  include <fcntl.h>
#  include <sys/mman.h>
#  include <sys/stat.h>
#  include <unistd.h>
#elif defined(_WIN32)
#  define WIN32_LEAN_AND_MEAN
#  include <windows.h>
#else
#  include <stdio.h>
#  include <stdlib.h>
#endif

typedef enum { TC_MAP_OK, TC_MAP_UNREADABLE, TC_MAP_SIZE, TC_MAP_MEMORY } tc_map_result;

#ifdef TC_HAS_MMAP
/* *data begins on a page. A file that is cut short while it is mapped ends the program that reads behind its end. */
static inline tc_map_result tc_map(const char *path, size_t bytes, size_t align, const void **data)
{
  struct stat   about;
  tc_map_result result = TC_MAP_UNREADABLE;
  const int     file = open(path, O_RDONLY | O_NONBLOCK);  /* a pipe does not make it wait */
  (void)align;
  *data = NULL;
  if (file < 0) return result;
  if (fstat(file, &about) == 0 && S_ISREG(about.st_mode)) {
    result = TC_MAP_SIZE;
    if (about.st_size >= 0 && (uintmax_t)about.st_size == bytes) {
      void *const mapped = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
      result = mapped == MAP_FAILED ? TC_MAP_MEMORY : TC_MAP_OK;
      if (result == TC_MAP_OK) *data = mapped;
    }
  }
  close(file);
  return result;
}

static inline void tc_unmap(const void *data, size_t bytes)
{
  if (data) munmap((void *)(uintptr_t)data, bytes);
}
#elif defined(_WIN32)
/* *data begins on a multiple of 64 KiB. What is mapped stays when its handles are closed. */
static inline tc_map_result tc_map(const char *path, size_t bytes, size_t align, const void **data)
{
  LARGE_INTEGER size;
  tc_map_result result = TC_MAP_UNREADABLE;
  const HANDLE  file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
  (void)align;
  *data = NULL;
  if (file == INVALID_HANDLE_VALUE) return result;
  if (GetFileType(file) == FILE_TYPE_DISK && GetFileSizeEx(file, &size)) {
    result = TC_MAP_SIZE;
    if (size.QuadPart >= 0 && (uint64_t)size.QuadPart == bytes) {
      const HANDLE mapping = CreateFileMappingA(file, NULL, PAGE_READONLY, 0, 0, NULL);
      if (mapping) *data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, bytes);
      if (mapping) CloseHandle(mapping);
      result = *data ? TC_MAP_OK : TC_MAP_MEMORY;
    }
  }
  CloseHandle(file);
  return result;
}

static inline void tc_unmap(const void *data, size_t bytes)
{
  (void)bytes;
  if (data) UnmapViewOfFile(data);
}
#else
/* The address that malloc gave stands in front of *data. */
static inline tc_map_result tc_map(const char *path, size_t bytes, size_t align, const void **data)
{
  FILE *const   file = fopen(path, "rb");
  void         *memory = NULL;
  tc_map_result result = TC_MAP_MEMORY;
  *data = NULL;
  if (!file) return TC_MAP_UNREADABLE;
  if (bytes <= SIZE_MAX - align - sizeof memory) memory = malloc(bytes + align + sizeof memory);
  if (memory) {
    const uintptr_t at = ((uintptr_t)memory + sizeof memory + align - 1) / align * align;
    ((void **)at)[-1] = memory;
    result = fread((void *)at, 1, bytes, file) == bytes && fgetc(file) == EOF && !ferror(file) ? TC_MAP_OK : ferror(file) ? TC_MAP_UNREADABLE : TC_MAP_SIZE;
    if (result == TC_MAP_OK) *data = (const void *)at;
    else free(memory);
  }
  fclose(file);
  return result;
}

static inline void tc_unmap(const void *data, size_t bytes)
{
  (void)bytes;
  if (data) free(((void *const *)data)[-1]);
}
#endif

#endif
