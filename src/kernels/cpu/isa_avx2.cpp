#define TANDEM_ISA avx2
#include "kernels/cpu/kernels.inc"
