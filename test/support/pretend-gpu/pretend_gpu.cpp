// A GPU for machines without one: a ggml backend for tests, linked into a separate addon
// (tapline-pretend-gpu in CMakeLists.txt) and never into the one that tapline ships.
//
// Arithmetic is the CPU's, so results can be compared bit by bit. Its GPU properties:
//  - Memory that is not the host's: nothing outside its own operations can read or write it, so that code
//    which follows a tensor's `data` by hand ends with a segmentation fault, here as there.
//  - New memory holds NaN (all bits set), so that whatever is used before it was computed shows.
//  - Limits: a buffer that does not fit is refused, and free memory is what is left.
//  - Large products over weights that stayed in host memory are offloaded, from 32 rows on, as CUDA does.
//  - Several devices, each with its own memory, and events, so that llama.cpp takes its pipelined path.
//
// TAPLINE_PRETEND_GPU=DEVICESxMEBIBYTES[-TAKEN], e.g. "2x64" or "1x64-40", where other programs hold 40 MiB;
// nothing registers without it. TAPLINE_PRETEND_GPU_COUNTS names a file that says at exit what the devices
// did. TAPLINE_PRETEND_GPU_WRONG makes them wrong in one way, for the guards that look for it: see Wrong.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "ggml-impl.h"

namespace {

constexpr int64_t kOffloadRows = 32;  // GGML_OP_OFFLOAD_MIN_BATCH's default in ggml-cuda

struct Counts {
  std::atomic<uint64_t> nodes{0}, uploaded{0}, uploads{0}, downloaded{0};
  std::atomic<uint64_t> computes{0}, waits{0}, builds{0};
} counts;

/// The mistakes that a device can make.
struct Wrong {
  const char* const name = std::getenv("TAPLINE_PRETEND_GPU_WRONG");

  bool is(const char* asked) const { return name != nullptr && std::strcmp(name, asked) == 0; }
  /// "softmax": where a piece of a graph ends with one that has a mask, its numbers are a tenth too large.
  /// "choice": where a piece ends behind sorted rows, their first number has the second's place, too.
  void spoil(ggml_cgraph* graph) const {
    ggml_tensor* last = ggml_graph_node(graph, -1);
    if (is("softmax") && last->op == GGML_OP_SOFT_MAX && last->src[1] != nullptr) scale(last, 1.1F);
    for (int i = 0; is("choice") && i < ggml_graph_n_nodes(graph); ++i) {
      ggml_tensor* sorted = ggml_graph_node(graph, i);
      if (sorted->op != GGML_OP_ARGSORT) continue;
      for (int64_t row = 0; row < ggml_nrows(sorted); ++row) {
        auto* ids = reinterpret_cast<int32_t*>(static_cast<char*>(sorted->data) + row * sorted->nb[1]);
        ids[1] = ids[0];
      }
    }
  }
  /// "products": the numbers of every matrix product are a twentieth too large.
  ggml_status compute(ggml_backend_t on, ggml_cgraph* graph) const {
    if (!is("products")) return ggml_backend_graph_compute(on, graph);
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
      ggml_cgraph node = ggml_graph_view(graph, i, i + 1);
      const ggml_status status = ggml_backend_graph_compute(on, &node);
      if (status != GGML_STATUS_SUCCESS) return status;
      ggml_tensor* const result = ggml_graph_node(graph, i);
      if (result->op == GGML_OP_MUL_MAT) scale(result, 1.05F);
    }
    return GGML_STATUS_SUCCESS;
  }
  static void scale(ggml_tensor* t, float factor) {
    auto* values = static_cast<float*>(t->data);
    for (int64_t i = 0; i < ggml_nelements(t); ++i) values[i] *= factor;
  }
  /// "positions": where positions are read back, the first two have changed places.
  void spoil(const ggml_tensor* t, void* data, size_t size) const {
    if (!is("positions") || std::strstr(t->name, "inp_pos") == nullptr) return;
    auto* positions = static_cast<int32_t*>(data);
    if (size >= 2 * sizeof(int32_t)) std::swap(positions[0], positions[1]);
  }
} const wrong;

/// The memory of all devices. Open while somebody computes or copies, sealed otherwise.
class Vault {
 public:
  void* allocate(size_t size) {
    const size_t bytes = whole_pages(size);
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return nullptr;
    std::memset(base, 0xff, bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (users_ == 0) mprotect(base, bytes, PROT_NONE);
    regions_.insert({base, bytes});
    return base;
  }

  void release(void* base, size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    regions_.erase({base, whole_pages(size)});
    munmap(base, whole_pages(size));
  }

  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (users_++ == 0) protect(PROT_READ | PROT_WRITE);
  }

  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--users_ == 0) protect(PROT_NONE);
  }

 private:
  static size_t whole_pages(size_t size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return (std::max<size_t>(size, 1) + page - 1) / page * page;
  }
  void protect(int how) {
    for (const auto& [base, bytes] : regions_) mprotect(base, bytes, how);
  }

  std::mutex mutex_;
  std::set<std::pair<void*, size_t>> regions_;
  int users_ = 0;
};

Vault& vault() {
  static Vault* const one = new Vault;  // outlives everything that could still be freed at exit
  return *one;
}

struct OpenVault {
  OpenVault() { vault().open(); }
  ~OpenVault() { vault().close(); }
};

struct Device {
  std::string name;
  size_t total = 0;
  std::atomic<size_t> used{0};
  ggml_backend_buffer_type buft{};
  ggml_backend_device device{};
};

Device& self(ggml_backend_dev_t dev) {
  return *static_cast<Device*>(dev->context);
}
Device& self(ggml_backend_buffer_type_t buft) {
  return *static_cast<Device*>(buft->context);
}
ggml_backend_dev_t cpu() {
  return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
}

// --- buffers -----------------------------------------------------------------------------------

void buffer_free(ggml_backend_buffer_t buffer) {
  self(buffer->buft).used -= buffer->size;
  vault().release(buffer->context, buffer->size);
}
void* buffer_base(ggml_backend_buffer_t buffer) {
  return buffer->context;
}
void buffer_memset(ggml_backend_buffer_t, ggml_tensor* t, uint8_t value, size_t offset, size_t size) {
  const OpenVault open;
  std::memset(static_cast<char*>(t->data) + offset, value, size);
}
void buffer_set(ggml_backend_buffer_t, ggml_tensor* t, const void* data, size_t offset, size_t size) {
  const OpenVault open;
  counts.uploaded += size;
  ++counts.uploads;
  std::memcpy(static_cast<char*>(t->data) + offset, data, size);
}
void buffer_get(ggml_backend_buffer_t, const ggml_tensor* t, void* data, size_t offset, size_t size) {
  const OpenVault open;
  counts.downloaded += size;
  std::memcpy(data, static_cast<const char*>(t->data) + offset, size);
  wrong.spoil(t, data, size);
}
bool is_ours(const ggml_backend_buffer* buffer);
bool buffer_copy(ggml_backend_buffer_t, const ggml_tensor* from, ggml_tensor* to) {
  if (!is_ours(from->view_src != nullptr ? from->view_src->buffer : from->buffer)) return false;
  const OpenVault open;
  std::memcpy(to->data, from->data, ggml_nbytes(from));
  return true;
}
void buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
  const OpenVault open;
  std::memset(buffer->context, value, buffer->size);
}
const ggml_backend_buffer_i kBuffer = {buffer_free, buffer_base,  nullptr, buffer_memset,
                                       buffer_set,  buffer_get,   nullptr, nullptr,
                                       buffer_copy, buffer_clear, nullptr};

const char* buft_name(ggml_backend_buffer_type_t buft) {
  return self(buft).name.c_str();
}
ggml_backend_buffer_t buft_allocate(ggml_backend_buffer_type_t buft, size_t size) {
  Device& device = self(buft);
  size_t used = device.used;
  do {
    if (size > device.total - used) return nullptr;
  } while (!device.used.compare_exchange_weak(used, used + size));
  void* base = vault().allocate(size);
  if (base == nullptr) {
    device.used -= size;
    return nullptr;
  }
  return ggml_backend_buffer_init(buft, kBuffer, base, size);
}
bool is_ours(const ggml_backend_buffer* buffer) {
  return buffer->buft->iface.alloc_buffer == buft_allocate;  // llama.cpp asks with empty buffers, too
}
size_t buft_alignment(ggml_backend_buffer_type_t) {
  return 128;
}
bool buft_is_host(ggml_backend_buffer_type_t) {
  return false;
}

// --- streams -----------------------------------------------------------------------------------

const char* backend_name(ggml_backend_t backend) {
  return self(backend->device).name.c_str();
}
ggml_backend_t inner(ggml_backend_t backend) {
  return static_cast<ggml_backend_t>(backend->context);
}
void backend_free(ggml_backend_t backend) {
  ggml_backend_free(inner(backend));
  delete backend;
}
/// Whether work was queued that nobody has waited for yet.
std::atomic<bool> pending{false};
void wait_for_work() {
  if (pending.exchange(false)) ++counts.waits;
}
void backend_synchronize(ggml_backend_t) {
  wait_for_work();
}
void backend_set(ggml_backend_t, ggml_tensor* t, const void* data, size_t offset, size_t size) {
  buffer_set(nullptr, t, data, offset, size);
}
void backend_get(ggml_backend_t, const ggml_tensor* t, void* data, size_t offset, size_t size) {
  pending = true;
  buffer_get(nullptr, t, data, offset, size);
}
/// Called for every piece of a new graph, and not for one that is used again.
void backend_optimize(ggml_backend_t, ggml_cgraph*, ggml_backend_graph_optimize_params*) {
  ++counts.builds;
}
ggml_status backend_compute(ggml_backend_t backend, ggml_cgraph* graph) {
  const OpenVault open;
  counts.nodes += static_cast<uint64_t>(ggml_graph_n_nodes(graph));
  ++counts.computes;
  pending = true;
  const ggml_status status = wrong.compute(inner(backend), graph);
  wrong.spoil(graph);
  return status;
}
void event_record(ggml_backend_t, ggml_backend_event_t) {}
void event_wait(ggml_backend_t, ggml_backend_event_t) {}

ggml_backend_i backend_interface() {
  ggml_backend_i made{};
  made.get_name = backend_name;
  made.free = backend_free;
  made.set_tensor_async = backend_set;
  made.get_tensor_async = backend_get;
  made.synchronize = backend_synchronize;
  made.graph_optimize = backend_optimize;
  made.graph_compute = backend_compute;
  made.event_record = event_record;
  made.event_wait = event_wait;
  return made;
}

// --- devices -----------------------------------------------------------------------------------

const char* device_name(ggml_backend_dev_t dev) {
  return self(dev).name.c_str();
}
const char* device_description(ggml_backend_dev_t) {
  return "Pretend GPU";
}
void device_memory(ggml_backend_dev_t dev, size_t* free, size_t* total) {
  *free = self(dev).total - self(dev).used;
  *total = self(dev).total;
}
enum ggml_backend_dev_type device_type(ggml_backend_dev_t) {
  return GGML_BACKEND_DEVICE_TYPE_GPU;
}
void device_props(ggml_backend_dev_t dev, ggml_backend_dev_props* props) {
  props->name = device_name(dev);
  props->description = device_description(dev);
  props->type = device_type(dev);
  props->device_id = nullptr;
  device_memory(dev, &props->memory_free, &props->memory_total);
  props->caps = {/*async=*/true, /*host_buffer=*/false, /*buffer_from_host_ptr=*/false, /*events=*/true,
                 /*mmap_support=*/true};
}
ggml_backend_t device_init(ggml_backend_dev_t dev, const char*) {
  static const ggml_backend_i interface = backend_interface();
  static ggml_guid guid = {'p', 'r', 'e', 't', 'e', 'n', 'd', ' ', 'g', 'p', 'u'};
  return new ggml_backend{&guid, interface, dev, ggml_backend_cpu_init()};
}
ggml_backend_buffer_type_t device_buft(ggml_backend_dev_t dev) {
  return &self(dev).buft;
}

bool device_supports_op(ggml_backend_dev_t, const ggml_tensor* op) {
  // Weights in a layout of the CPU's own (repacked for its instructions) are copied as they are: no GPU reads
  // those.
  for (const ggml_tensor* source : op->src) {
    if (source == nullptr || source->buffer == nullptr || is_ours(source->buffer)) continue;
    if (!ggml_backend_buffer_is_host(source->buffer)) return false;
  }
  return ggml_backend_dev_supports_op(cpu(), op);
}
bool device_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
  return buft->device == dev && buft->iface.alloc_buffer == buft_allocate;
}

/// Rows that an operation computes, counted as ggml-cuda counts them.
int64_t batch_rows(const ggml_tensor* op) {
  switch (op->op) {
    case GGML_OP_GET_ROWS:
      return 0;
    case GGML_OP_MUL_MAT:
      return op->ne[1];
    case GGML_OP_MUL_MAT_ID:
    case GGML_OP_ROPE:
      return op->ne[2];
    default:
      return ggml_nrows(op);
  }
}
bool device_offloads(ggml_backend_dev_t, const ggml_tensor* op) {
  return batch_rows(op) >= kOffloadRows;
}

ggml_backend_event_t event_new(ggml_backend_dev_t dev) {
  return new ggml_backend_event{dev, nullptr};
}
void event_free(ggml_backend_dev_t, ggml_backend_event_t event) {
  delete event;
}
void event_synchronize(ggml_backend_dev_t, ggml_backend_event_t) {
  wait_for_work();
}

const ggml_backend_device_i kDevice = {
    device_name,          device_description, device_memory, device_type, device_props,
    device_init,          device_buft,        nullptr,       nullptr,     device_supports_op,
    device_supports_buft, device_offloads,    event_new,     event_free,  event_synchronize};

// --- registration ------------------------------------------------------------------------------

std::vector<Device*>& devices() {
  static auto* const all = new std::vector<Device*>;
  return *all;
}

const char* reg_name(ggml_backend_reg_t) {
  return "Pretend";
}
size_t reg_count(ggml_backend_reg_t) {
  return devices().size();
}
ggml_backend_dev_t reg_device(ggml_backend_reg_t, size_t index) {
  return &devices()[index]->device;
}
void set_threads(ggml_backend_t backend, int threads) {
  ggml_backend_cpu_set_n_threads(inner(backend), threads);
}
void* reg_function(ggml_backend_reg_t, const char* name) {
  return std::strcmp(name, "ggml_backend_set_n_threads") == 0 ? reinterpret_cast<void*>(set_threads)
                                                              : nullptr;
}

void write_counts() {
  FILE* const file = std::fopen(std::getenv("TAPLINE_PRETEND_GPU_COUNTS"), "w");
  if (file == nullptr) return;
  std::fprintf(file, "{");
  const std::pair<const char*, const std::atomic<uint64_t>*> all[] = {
      {"nodes", &counts.nodes},           {"computes", &counts.computes}, {"builds", &counts.builds},
      {"waits", &counts.waits},           {"uploads", &counts.uploads},   {"uploaded", &counts.uploaded},
      {"downloaded", &counts.downloaded},
  };
  const char* separator = "";
  for (const auto& [name, count] : all) {
    std::fprintf(file, "%s\"%s\":%llu", separator, name, static_cast<unsigned long long>(*count));
    separator = ",";
  }
  std::fprintf(file, "}\n");
  std::fclose(file);
}

bool register_devices() {
  const char* const text = std::getenv("TAPLINE_PRETEND_GPU");
  int count = 0;
  long total = 0;
  long taken = 0;
  if (text == nullptr || std::sscanf(text, "%dx%ld-%ld", &count, &total, &taken) < 2) return false;
  static ggml_backend_reg reg{
      GGML_BACKEND_API_VERSION, {reg_name, reg_count, reg_device, reg_function}, nullptr};
  for (int i = 0; i < count; ++i) {
    auto* const device = new Device;  // as ggml's own devices, kept until the process ends
    device->name = "Pretend" + std::to_string(i);
    device->total = static_cast<size_t>(total) << 20U;
    device->used = static_cast<size_t>(taken) << 20U;
    device->device = {kDevice, &reg, device};
    device->buft.iface.get_name = buft_name;
    device->buft.iface.alloc_buffer = buft_allocate;
    device->buft.iface.get_alignment = buft_alignment;
    device->buft.iface.is_host = buft_is_host;
    device->buft.device = &device->device;
    device->buft.context = device;
    devices().push_back(device);
  }
  ggml_backend_register(&reg);
  if (std::getenv("TAPLINE_PRETEND_GPU_COUNTS") != nullptr) std::atexit(write_counts);
  return true;
}

const bool registered = register_devices();

}  // namespace
