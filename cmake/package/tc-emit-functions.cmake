# tc_emit_add_model and tc_emit_vendored; docs/cmake.md describes them.
#
#   tc_emit_add_model(NAME MODEL FILE [OPTION...])
#     emits a package while the project is built and gives the library NAME::NAME
#   tc_emit_vendored(NAME DIR FOLDER MODEL FILE [OPTION...])
#     adds the test tc_emit_vendored_NAME, which fails with the diff where FOLDER is not what the model gives
#
# Options of both: TARGET c|cuda, CPU, ARCH, PRECISION, FP, OPT_LEVEL, STRING_BYTES with one value; DIMS, INPUT_SHAPES,
# INPUT_VALUES, ELEMENTS, OPS with some; SINGLE_FILE, JIT without; FLAGS with further words for tc-emit's command line.
include_guard(GLOBAL)

# The folder of this file, seen from a function.
set_property(GLOBAL PROPERTY TC_EMIT_CMAKE_DIR "${CMAKE_CURRENT_LIST_DIR}")

# Sets in the caller's scope: tc_model (absolute path), tc_target and tc_flags (words of tc-emit). `kind` names the function in messages,
# `more` the further options with one value, which become tc_OPTION.
function(_tc_emit_arguments kind name more)
  set(switches SINGLE_FILE JIT)
  set(one MODEL TARGET CPU ARCH PRECISION FP OPT_LEVEL STRING_BYTES ${more})
  set(several DIMS INPUT_SHAPES INPUT_VALUES ELEMENTS OPS FLAGS)
  cmake_parse_arguments(tc "${switches}" "${one}" "${several}" ${ARGN})
  if(tc_UNPARSED_ARGUMENTS)
    list(JOIN switches ", " a)
    list(JOIN one ", " b)
    list(JOIN several ", " c)
    message(FATAL_ERROR "${kind}(${name}): unknown argument \"${tc_UNPARSED_ARGUMENTS}\"; known: ${b}, ${c}, ${a}")
  endif()
  if(tc_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${kind}(${name}): ${tc_KEYWORDS_MISSING_VALUES} needs a value")
  endif()
  foreach(option IN ITEMS MODEL ${more})
    if(NOT tc_${option} AND NOT option STREQUAL OUTPUT_DIR)
      message(FATAL_ERROR "${kind}(${name}): ${option} is missing")
    endif()
    set(tc_${option} "${tc_${option}}" PARENT_SCOPE)
  endforeach()
  get_filename_component(model "${tc_MODEL}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT EXISTS "${model}")
    message(FATAL_ERROR "${kind}(${name}): there is no file ${model}. The package's list of files comes from the model, so it "
      "has to be there when CMake configures: where a command makes it, run that command before (execute_process)")
  endif()
  set(flags --name "${name}")
  foreach(pair IN ITEMS TARGET=--target CPU=--cpu ARCH=--arch PRECISION=--precision FP=--fp OPT_LEVEL=-O STRING_BYTES=--string-bytes)
    string(REPLACE "=" ";" pair "${pair}")
    list(GET pair 0 option)
    list(GET pair 1 flag)
    if(DEFINED tc_${option})
      list(APPEND flags ${flag} "${tc_${option}}")
    endif()
  endforeach()
  foreach(pair IN ITEMS DIMS=--dim INPUT_SHAPES=--input-shape INPUT_VALUES=--input-value ELEMENTS=--elements)
    string(REPLACE "=" ";" pair "${pair}")
    list(GET pair 0 option)
    list(GET pair 1 flag)
    foreach(value IN LISTS tc_${option})
      list(APPEND flags ${flag} "${value}")
    endforeach()
  endforeach()
  foreach(file IN LISTS tc_OPS)
    get_filename_component(file "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND flags --ops "${file}")
  endforeach()
  if(tc_SINGLE_FILE)
    list(APPEND flags --single-file)
  endif()
  if(tc_JIT)
    list(APPEND flags --jit)
  endif()
  list(APPEND flags ${tc_FLAGS})
  set(tc_JIT "${tc_JIT}" PARENT_SCOPE)
  set(tc_target "${tc_TARGET}" PARENT_SCOPE)
  set(tc_model "${model}" PARENT_SCOPE)
  set(tc_flags "${flags}" PARENT_SCOPE)
endfunction()

# What links a CUDA package needs these languages itself, and a subdirectory cannot switch them on for it.
function(_tc_emit_need_languages name)
  set(needed CXX)
  if(NOT TC_CUDA_ON_CPU AND NOT tc_JIT)
    list(APPEND needed CUDA)
  endif()
  foreach(language IN LISTS needed)
    if(NOT CMAKE_${language}_COMPILER_LOADED)
      list(JOIN needed " and " all)
      string(REPLACE ";" " " words "${needed}")
      message(FATAL_ERROR "tc_emit_add_model(${name}): TARGET cuda needs ${all} in the project that links it: "
        "project(... LANGUAGES C ${words}). Without CUDA, -DTC_CUDA_ON_CPU=ON runs the kernels on the CPU")
    endif()
  endforeach()
endfunction()

# Asks tc-emit for the names of the files that the model gives and lets it write the package's build files into `folder`. Sets
# tc_outputs (absolute paths). CMake configures again when a file changes that the answer depends on.
function(_tc_emit_list name folder)
  get_target_property(tool tc-emit::tc-emit IMPORTED_LOCATION)
  execute_process(COMMAND "${tool}" cmake --quiet ${tc_flags} "${tc_model}" -o "${folder}"
                  OUTPUT_VARIABLE lines ERROR_VARIABLE messages RESULT_VARIABLE failed)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${tc_model}" "${tool}")
  if(failed)
    message(FATAL_ERROR "tc_emit_add_model(${name}): tc-emit refuses ${tc_model}\n${messages}")
  endif()
  string(REPLACE ";" "\\;" lines "${lines}")
  string(REGEX REPLACE "\n+" ";" lines "${lines}")
  set(outputs)
  foreach(line IN LISTS lines)
    if(line MATCHES "^output (.*)")
      list(APPEND outputs "${folder}/${CMAKE_MATCH_1}")
    elseif(line MATCHES "^input (.*)")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  set(tc_outputs "${outputs}" PARENT_SCOPE)
endfunction()

function(tc_emit_add_model name)
  if(TARGET ${name} OR TARGET ${name}::${name})
    message(FATAL_ERROR "tc_emit_add_model(${name}): there is a target of that name already; a package needs a name of its own")
  endif()
  _tc_emit_arguments(tc_emit_add_model "${name}" "OUTPUT_DIR" ${ARGN})
  if(tc_target STREQUAL "cuda")
    _tc_emit_need_languages("${name}")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/tc-emit/${name}")
  if(tc_OUTPUT_DIR)
    get_filename_component(folder "${tc_OUTPUT_DIR}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  _tc_emit_list("${name}" "${folder}")
  # What CMake itself reads is there already and stays as it is.
  set(manifest "${folder}/manifest.json")
  set(built ${tc_outputs})
  list(REMOVE_ITEM built "${manifest}" "${folder}/CMakeLists.txt")
  list(FILTER built EXCLUDE REGEX "/cuda_on_cpu/[^/]*$")
  set(depfile "${CMAKE_CURRENT_BINARY_DIR}/tc-emit/${name}.d")
  add_custom_command(
    OUTPUT "${manifest}"
    BYPRODUCTS ${built}
    COMMAND tc-emit::tc-emit --quiet ${tc_flags} "${tc_model}" -o "${folder}" --depfile "${depfile}"
    DEPENDS "${tc_model}" "$<TARGET_FILE:tc-emit::tc-emit>"
    DEPFILE "${depfile}"
    COMMENT "Emitting ${name}" VERBATIM)
  add_custom_target(${name}_emit DEPENDS "${manifest}")
  add_subdirectory("${folder}" "${CMAKE_CURRENT_BINARY_DIR}/tc-emit/${name}-build")
  set_source_files_properties(${built} DIRECTORY "${folder}" PROPERTIES GENERATED TRUE)
  add_dependencies(${name} ${name}_emit)
  if(TARGET ${name}_shared)
    add_dependencies(${name}_shared ${name}_emit)
  endif()
endfunction()

function(tc_emit_vendored name)
  _tc_emit_arguments(tc_emit_vendored "${name}" "DIR" ${ARGN})
  get_filename_component(folder "${tc_DIR}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_property(here GLOBAL PROPERTY TC_EMIT_CMAKE_DIR)
  add_test(NAME tc_emit_vendored_${name}
           COMMAND "${CMAKE_COMMAND}" -P "${here}/tc-emit-check.cmake" -- $<TARGET_FILE:tc-emit::tc-emit> ${tc_flags}
                   "${tc_model}" -o "${folder}")
endfunction()
