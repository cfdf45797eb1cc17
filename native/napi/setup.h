#pragma once

// The only place that includes napi.h, so that every file sees it with the same configuration
// (NAPI_VERSION and the exception switch come from CMakeLists.txt). Node-API calls report errors as
// pending JavaScript exceptions here, never as C++ exceptions.
#include <napi.h>
