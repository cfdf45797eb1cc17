/* A Node-API module of one function: the bytes that malloc has given out in this process and not got back. */
#include <malloc.h>
#include <node_api.h>

static napi_value in_use(napi_env env, napi_callback_info info) {
  (void)info;
  const struct mallinfo2 all = mallinfo2();
  napi_value bytes;
  napi_create_double(env, (double)all.uordblks + (double)all.hblkhd, &bytes);
  return bytes;
}

NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, "inUse", NAPI_AUTO_LENGTH, in_use, NULL, &function);
  return function;
}
