/* Holds src/driver/cuda_abi.h against NVIDIA's cuda.h, where a CUDA toolkit is
   installed: sizes, alignments and offsets of every type and field, values of
   every constant.  TAP on standard output. */
#include "driver/abi_check.h"

#include "driver/cuda_abi.h"
#include "tap.h"

static const abi_type types[] = {ABI_TYPES(ABI_TYPE){0}};
static const abi_field fields[] = {ABI_FIELDS(ABI_FIELD){0}};
static const abi_constant constants[] = {
    CGL_CUDA_ERRORS(ABI_ERROR) CGL_CUDA_CONSTANTS(ABI_CONSTANT){0}};


static void check_types(const abi_type *theirs) {
  int differ = 0, n = 0;
  for (const abi_type *ours = types; ours->name != NULL; ours++, theirs++, n++)
    if (ours->size != theirs->size || ours->align != theirs->align) {
      differ++;
      printf("# %s: size %zu, align %zu; cuda.h %zu, %zu\n", ours->name,
             ours->size, ours->align, theirs->size, theirs->align);
    }
  tap_ok(differ == 0, "%d types are of the size and alignment of cuda.h's", n);
}


static void check_fields(const abi_field *theirs) {
  int differ = 0, n = 0;
  for (const abi_field *ours = fields; ours->type != NULL;
       ours++, theirs++, n++)
    if (ours->offset != theirs->offset || ours->size != theirs->size) {
      differ++;
      printf("# %s.%s: offset %zu, size %zu; cuda.h %zu, %zu\n", ours->type,
             ours->name, ours->offset, ours->size, theirs->offset,
             theirs->size);
    }
  tap_ok(differ == 0, "%d fields lie where cuda.h has them", n);
}


static void check_constants(const abi_constant *theirs) {
  int differ = 0, n = 0;
  for (const abi_constant *ours = constants; ours->name != NULL;
       ours++, theirs++, n++)
    if (ours->value != theirs->value) {
      differ++;
      printf("# %s: %lld; cuda.h %lld\n", ours->name, ours->value,
             theirs->value);
    }
  tap_ok(differ == 0, "%d constants have the values of cuda.h's", n);
}


int main(void) {
  abi_view cuda;
  if (!abi_cuda(&cuda)) {
    tap_skip("cuda_abi.h against cuda.h", "no cuda.h of CUDA 13 or later");
    return tap_done();
  }
  check_types(cuda.types);
  check_fields(cuda.fields);
  check_constants(cuda.constants);
  return tap_done();
}
