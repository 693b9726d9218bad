// Prints what this processor has kernels for, from the slowest to the quickest.
#include <cstdio>
#include <string>

#include "kernels/isa.h"

int main() {
  std::string names;
  for (const ingle::Isa isa : ingle::supported_isas()) {
    names += names.empty() ? "" : " ";
    names += ingle::to_string(isa);
  }
  std::puts(names.c_str());
  return 0;
}
