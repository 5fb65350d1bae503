# Defines the imported target tc_onnx: ONNX's C++ library (parser, schemas, shape inference, version converter).
#
# It is built once per machine into a cache folder that is keyed by version, compiler and build text, because it takes
# minutes and never changes. Its sources are the pinned source package from PyPI, checked by SHA-256; TC_ONNX_SOURCE names
# a folder with unpacked sources instead (then nothing is downloaded).
set(TC_ONNX_VERSION 1.23.2)
set(TC_ONNX_SHA256 008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8)
set(TC_ONNX_SOURCE "" CACHE PATH "Folder with the unpacked ONNX sources; empty: the pinned package from PyPI")

set(_cache "$ENV{XDG_CACHE_HOME}")
if(NOT _cache)
  set(_cache "$ENV{HOME}/.cache")
endif()
set(TC_CACHE_DIR "${_cache}/tc-emit" CACHE PATH "Where things are kept that are built once per machine")

set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf 3.21 REQUIRED)
find_package(Threads REQUIRED)

# Fetches the pinned package into the cache and unpacks it into `folder`.
function(tc_fetch_onnx folder)
  set(tarball ${TC_CACHE_DIR}/downloads/onnx-${TC_ONNX_VERSION}.tar.gz)
  if(NOT EXISTS ${tarball})
    message(STATUS "Fetching onnx ${TC_ONNX_VERSION} (source package from PyPI)")
    find_program(TC_PYTHON python3 REQUIRED)
    execute_process(
      COMMAND ${TC_PYTHON} -m pip download --quiet --no-deps --no-binary onnx
              --dest ${TC_CACHE_DIR}/downloads onnx==${TC_ONNX_VERSION}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
  file(SHA256 ${tarball} sum)
  if(NOT sum STREQUAL TC_ONNX_SHA256)
    file(REMOVE ${tarball})
    message(FATAL_ERROR "${tarball}: SHA-256 is ${sum}, expected ${TC_ONNX_SHA256}; the file has been removed")
  endif()
  file(ARCHIVE_EXTRACT INPUT ${tarball} DESTINATION ${folder})
endfunction()

# Builds and installs the library into `prefix`.
function(tc_build_onnx prefix)
  set(work ${prefix}.work)
  file(REMOVE_RECURSE ${work} ${prefix})
  set(source "${TC_ONNX_SOURCE}")
  if(NOT source)
    tc_fetch_onnx(${work}/source)
    set(source ${work}/source/onnx-${TC_ONNX_VERSION})
  endif()
  message(STATUS "Building the ONNX library (once per machine, 1-3 minutes): ${prefix}")
  set(launcher)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set(launcher -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}/cmake/onnx -B ${work}/build -G ${CMAKE_GENERATOR}
            -DCMAKE_BUILD_TYPE= -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DTC_ONNX_SOURCE=${source}
            -DCMAKE_INSTALL_PREFIX=${prefix} -DCMAKE_INSTALL_MESSAGE=NEVER ${launcher}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${work}/build --parallel 2 --target install
                  OUTPUT_FILE ${prefix}.log RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "the ONNX library did not build; see ${prefix}.log")
  endif()
  file(REMOVE_RECURSE ${work})
  file(TOUCH ${prefix}/complete)
endfunction()

file(SHA256 ${PROJECT_SOURCE_DIR}/cmake/onnx/CMakeLists.txt _text)
string(SHA256 _key "${TC_ONNX_SOURCE};${CMAKE_CXX_COMPILER_ID};${CMAKE_CXX_COMPILER_VERSION};${Protobuf_VERSION};${_text}")
string(SUBSTRING "${_key}" 0 12 _key)
set(_prefix ${TC_CACHE_DIR}/onnx-${TC_ONNX_VERSION}-${_key})
if(NOT EXISTS ${_prefix}/complete)
  file(LOCK ${_prefix}.lock TIMEOUT 1200)  # two builds at once wait for each other
  if(NOT EXISTS ${_prefix}/complete)
    tc_build_onnx(${_prefix})
  endif()
  file(LOCK ${_prefix}.lock RELEASE)
endif()

add_library(tc_onnx STATIC IMPORTED GLOBAL)
set_target_properties(
  tc_onnx
  PROPERTIES IMPORTED_LOCATION ${_prefix}/lib/libonnx.a
             INTERFACE_COMPILE_DEFINITIONS "ONNX_NAMESPACE=onnx;ONNX_ML=1;__STDC_FORMAT_MACROS"
             INTERFACE_COMPILE_OPTIONS "-ffile-prefix-map=${_prefix}/include/="
             INTERFACE_INCLUDE_DIRECTORIES ${_prefix}/include
             INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${_prefix}/include
             INTERFACE_LINK_LIBRARIES "protobuf::libprotobuf;Threads::Threads")
