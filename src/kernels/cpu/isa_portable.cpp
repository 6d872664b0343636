#define TANDEM_ISA portable
#include "kernels/cpu/kernels.inc"
