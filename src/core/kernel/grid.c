/* Grids that are parameters. */
#include "core/kernel/kernel.h"

#include <math.h>
#include <string.h>


/* What the numbers ask for, whether a device has it or not. */
static void grid_find(const cgl_numbers *numbers, double grid[3]) {
  for (size_t i = 0; i < 3; i++)
    grid[i] = cgl_record_number(numbers, i);
  if (numbers->threads && grid[0] >= 0)
    grid[0] = fmax(ceil(grid[0] / numbers->threads), 1);
}


/* `op`: the launch that a graph has; NULL: it is being made. */
static cgl_status grid_refuse(const cgl_kernel *kernel, const cgl_op *op,
                              const cgl_numbers *numbers,
                              const char *operation) {
  const int *most = kernel->object.context->grid_max;
  const bool known = op && op->site.file;
  double grid[3];
  grid_find(numbers, grid);
  for (size_t i = 0; i < 3; i++) {
    const double number = cgl_record_number(numbers, i);
    if (grid[i] >= 1 && grid[i] <= most[i] && number == floor(number))
      continue;
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "a parameter asks for %.17g %s along %c of the grid of %s%s%s; 1 "
             "to %d blocks are possible",
             number, numbers->threads && !i ? "threads" : "blocks", "xyz"[i],
             kernel -> name, known ? ", captured at " : "",
             known ? cgl_site_text(op->site) : "", most[i]);
    return cgl_fail_hint("set the parameter to a whole number of that range");
  }
  return CGL_OK;
}


static cgl_status grid_check(const cgl_op *op, const cgl_numbers *numbers,
                             const char *operation) {
  return grid_refuse((const cgl_kernel *)op->object, op, numbers, operation);
}


static void grid_apply(const cgl_numbers *numbers, unsigned char *values,
                       cgl_launch *launch) {
  double grid[3];
  (void)values;
  grid_find(numbers, grid);
  for (size_t i = 0; i < 3; i++)
    launch->grid[i] =
        grid[i] >= 1 && grid[i] <= INT32_MAX ? (uint32_t)grid[i] : 1;
}


const cgl_rule cgl_kernel_grid_rule = {grid_check, grid_apply};
const cgl_rule cgl_kernel_threads_rule = {grid_check, grid_apply};


cgl_status cgl_kernel_read_grid(const cgl_kernel *kernel,
                                const cgl_grid_params *grid, cgl_launch *launch,
                                cgl_ruled *ruled, const char *operation) {
  const cgl_rule *rule =
      grid->threads ? &cgl_kernel_threads_rule : &cgl_kernel_grid_rule;
  cgl_status status = CGL_OK;
  memset(ruled, 0, sizeof *ruled);
  ruled->numbers.threads = grid->threads ? launch->block[0] : 0;
  for (size_t i = 0; i < 3 && !status; i++) {
    cgl_param *param = grid->threads && !i ? grid->threads : grid->extents[i];
    status =
        cgl_issue_set_number(ruled, i, rule, param, launch->grid[i], operation);
  }
  if (!status)
    status = grid_refuse(kernel, NULL, &ruled->numbers, operation);
  if (!status)
    grid_apply(&ruled->numbers, NULL, launch);
  return status;
}
