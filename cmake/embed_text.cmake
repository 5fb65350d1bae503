# tc_embed_text(OUT FUNCTION FOLDER FILE...): writes OUT, a C++ source that holds each file as a raw string, in a table of
# SupportFile that FUNCTION returns, named by its path inside the folder. Runs when CMake configures, again whenever a file
# changes.
function(tc_embed_text out function folder)
  set(rows "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(RELATIVE_PATH name "${folder}" "${file}")
    file(READ "${file}" text)
    string(APPEND rows "    {\"${name}\",\n     R\"tc_text(${text})tc_text\"},\n")
  endforeach()
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
  file(CONFIGURE OUTPUT "${out}" CONTENT [=[// Written by cmake/embed_text.cmake from the files of @folder@.
#include "templates/text.h"

namespace tc {

const std::vector<SupportFile>& @function@() {
  static const std::vector<SupportFile> files = {
@rows@  };
  return files;
}

}  // namespace tc
]=] @ONLY)
endfunction()

# tc_embed_page(OUT FILE HEADER FUNCTION): writes OUT, a C++ source with the function, declared in HEADER, that returns
# the text of the file.
function(tc_embed_page out file header function)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
  file(READ "${PROJECT_SOURCE_DIR}/${file}" text)
  file(CONFIGURE OUTPUT "${out}" CONTENT [=[// Written by cmake/embed_text.cmake from @file@.
#include "@header@"

namespace tc {

std::string_view @function@() { return R"tc_text(@text@)tc_text"; }

}  // namespace tc
]=] @ONLY)
endfunction()
