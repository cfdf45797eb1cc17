// What FlushDenormals does to arithmetic on this processor, as one line of JSON.

#include <cfloat>
#include <cstdio>

#include "numbers/flush_denormals.h"

namespace {

// Volatile: nothing is computed by the compiler, or moved out of the lifetime of FlushDenormals.
volatile float smallest = FLT_MIN;
volatile double smallest_double = DBL_MIN;
volatile float denormal = FLT_MIN / 4;

void print(const char* name, const char* end) {
  // Operands: a denormal times 2^26 is far above FLT_MIN.
  const volatile float result = smallest / 4;
  const volatile float operand = denormal * 67108864.0F;
  const volatile double wide = smallest_double / 4;
  std::printf("\"%s\": {\"result\": %d, \"operand\": %d, \"double\": %d}%s", name, result != 0, operand != 0,
              wide != 0, end);
}

}  // namespace

int main() {
  std::printf("{");
  print("before", ", ");
  {
    const tapline::FlushDenormals flush;
    print("during", ", ");
  }
  print("after", "}\n");
}
