# tc_embed_text(OUT FOLDER FILE...): writes OUT, a C++ source that holds each file as a raw string, in the table that
# templates/text.cc reads, named by its path inside the folder. Runs when CMake configures, again whenever a file changes.
function(tc_embed_text out folder)
  set(rows "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(RELATIVE_PATH name "${folder}" "${file}")
    file(READ "${file}" text)
    string(APPEND rows "    {\"${name}\",\n     R\"tc_text(${text})tc_text\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${out}" CONTENT [=[// Written by cmake/embed_text.cmake from the files of templates/text/.
#include "templates/text.h"

namespace tc {

const std::vector<SupportFile>& support_files() {
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
