#define TANDEM_ISA avx512
#include "kernels/cpu/kernels.inc"
