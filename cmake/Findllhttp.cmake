# llhttp, as Debian ships it: a library with headers (libllhttp-dev, Debian 13 on), or its C sources inside
# node-llhttp (Debian 12), which are compiled here. Either way the target is llhttp::llhttp.
include(FindPackageHandleStandardArgs)

find_path(LLHTTP_INCLUDE_DIR llhttp.h PATHS /usr/share/include/llhttp)
find_library(LLHTTP_LIBRARY llhttp)
find_path(LLHTTP_SOURCE_DIR llhttp.c PATHS /usr/share/llhttp NO_DEFAULT_PATH)

if(LLHTTP_LIBRARY)
  find_package_handle_standard_args(llhttp REQUIRED_VARS LLHTTP_LIBRARY LLHTTP_INCLUDE_DIR)
else()
  find_package_handle_standard_args(llhttp REQUIRED_VARS LLHTTP_SOURCE_DIR LLHTTP_INCLUDE_DIR)
endif()

if(llhttp_FOUND AND NOT TARGET llhttp::llhttp)
  if(LLHTTP_LIBRARY)
    add_library(llhttp::llhttp UNKNOWN IMPORTED)
    set_target_properties(llhttp::llhttp PROPERTIES IMPORTED_LOCATION ${LLHTTP_LIBRARY}
                                                    INTERFACE_INCLUDE_DIRECTORIES ${LLHTTP_INCLUDE_DIR})
  else()
    add_library(llhttp_from_source STATIC ${LLHTTP_SOURCE_DIR}/llhttp.c ${LLHTTP_SOURCE_DIR}/api.c
                                          ${LLHTTP_SOURCE_DIR}/http.c)
    target_include_directories(llhttp_from_source SYSTEM PUBLIC ${LLHTTP_INCLUDE_DIR})
    target_compile_definitions(llhttp_from_source PUBLIC LLHTTP_STRICT_MODE=1)
    target_compile_options(llhttp_from_source PRIVATE -O2 -w)
    add_library(llhttp::llhttp ALIAS llhttp_from_source)
  endif()
endif()
