/* The elementary functions that a source names, and the parts of the device
   header that have them: a part that stands in front of a kernel is read again
   in every compile.
   Invariant: a function that is not named is one of libm's, and never called.
 */
#include <string.h>

#include "compile/device/device_text.h"
#include "compile/frontend/program.h"
#include "compile/host/host.h"

/* Parts; in front of each stands device_elementary.h, ELEMENTARY. */
enum {
  ELEMENTARY = 1,
  POWER = 2,
  HYPERBOLIC = 4,
  ANGLE = 8,
  TURN = 16,
  ERF = 32
};

/* What is asked for in float and in double. */
typedef struct function {
  const char *name;
  unsigned in_float, in_double;
} function;

static const function functions[] = {
    {"exp", 0, POWER},
    {"exp2", 0, POWER},
    {"exp10", 0, POWER},
    {"log", 0, POWER},
    {"log2", 0, POWER},
    {"log10", 0, POWER},
    {"expm1", POWER, POWER},
    {"log1p", POWER, POWER},
    {"pow", POWER, POWER},
    {"powi", POWER, POWER},
    {"cbrt", POWER, POWER},
    {"rcbrt", POWER, POWER},
    {"hypot", POWER, POWER},
    {"rhypot", POWER, POWER},
    {"cuCabs", POWER, POWER}, /* device_complex.h */
    {"tanh", 0, HYPERBOLIC},
    {"erf", 0, ERF},
    {"erfc", HYPERBOLIC, HYPERBOLIC},
    {"erfcx", HYPERBOLIC, HYPERBOLIC | POWER},
    {"erfinv", HYPERBOLIC | POWER | ERF, HYPERBOLIC | POWER | ERF},
    {"erfcinv", HYPERBOLIC | POWER | ERF, HYPERBOLIC | POWER | ERF},
    {"normcdf", HYPERBOLIC, HYPERBOLIC},
    {"normcdfinv", HYPERBOLIC | POWER | ERF, HYPERBOLIC | POWER | ERF},
    {"sinh", HYPERBOLIC, HYPERBOLIC},
    {"cosh", HYPERBOLIC, HYPERBOLIC},
    {"asinh", HYPERBOLIC, HYPERBOLIC},
    {"acosh", HYPERBOLIC, HYPERBOLIC},
    {"atanh", HYPERBOLIC, HYPERBOLIC},
    {"asin", ANGLE, ANGLE},
    {"acos", ANGLE, ANGLE},
    {"atan", ANGLE, ANGLE},
    {"atan2", ANGLE, ANGLE},
    {"sin", ANGLE, ANGLE | TURN},
    {"cos", ANGLE, ANGLE | TURN},
    {"tan", ANGLE, ANGLE | TURN},
    {"sincos", ANGLE, ANGLE | TURN},
    {"sinpi", ANGLE, ANGLE | TURN},
    {"cospi", ANGLE, ANGLE | TURN},
    {"sincospi", ANGLE, ANGLE | TURN},
};

/* The parts that the name asks for: `exp` itself, `expf`, `__expf`, or of half
   `hexp` and `h2exp`, which are made of `expf`. */
static unsigned find_parts(const char *text, size_t length) {
  static const char *const fronts[] = {"", "__", "h2", "h"};
  unsigned parts = 0;
  for (size_t k = 0; k < sizeof fronts / sizeof *fronts; k++) {
    const size_t front = strlen(fronts[k]);
    const char *name = text + front;
    if (length <= front || memcmp(text, fronts[k], front))
      continue;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
      const function *f = &functions[i];
      if (*name != *f->name)
        continue;
      const size_t n = strlen(f->name), rest = length - front - n;
      if (length < front + n || rest > 1 || memcmp(name, f->name, n) ||
          (rest && name[n] != 'f'))
        continue;
      const bool in_float = rest || *fronts[k] == 'h';
      parts |= ELEMENTARY | f->in_float | (in_float ? 0 : f->in_double);
    }
  }
  return parts;
}


static unsigned all_parts(const cgl_job *job) {
  const cgl_pp *pp = &job->program->pp;
  unsigned parts = 0;
  for (size_t i = 0; i < job->source->noptions; i++)
    if (strcmp(job->source->options[i], CGL_PRECISE_MATH) == 0)
      return 0;
  if (cgl_program_is_partial(job->program) ||
      cgl_program_is_guess(job->program))
    return ELEMENTARY | POWER | HYPERBOLIC | ANGLE | TURN | ERF;
  for (size_t i = 0; i < pp->out.count; i++)
    if (pp->out.at[i].kind == CGL_TOKEN_NAME)
      parts |= find_parts(pp->out.at[i].text, pp->out.at[i].length);
  return parts;
}


void cgl_host_put_functions(const cgl_job *job, cgl_text *out) {
  const unsigned parts = job ? all_parts(job) : ~0u;
  if (parts)
    cgl_text_put(out, cgl_text_device_elementary);
  if (parts & POWER)
    cgl_text_put(out, cgl_text_device_power);
  if (parts & HYPERBOLIC)
    cgl_text_put(out, cgl_text_device_hyperbolic);
  if (parts & ANGLE)
    cgl_text_put(out, cgl_text_device_angle);
  if (parts & TURN)
    cgl_text_put(out, cgl_text_device_turn);
  if (parts & ERF)
    cgl_text_put(out, cgl_text_device_erf);
}


bool cgl_host_has_functions(const cgl_job *job) {
  return all_parts(job) != 0;
}
