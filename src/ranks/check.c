/* CGRAPHLUA_RANKS_CHECK=1: all ranks issue the same. */
#include "ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static const char *const operation_names[] = {
#define X(name) #name,
    CGL_RANKS_OPERATIONS(X)
#undef X
};


static void claim_write(cgl_ranks_claim *claim, const char *operation,
                        const cgl_mpi_call *call, bool captured) {
  const bool reduces = call->what == CGL_ALL_REDUCE ||
                       call->what == CGL_REDUCE ||
                       call->what == CGL_REDUCE_SCATTER;
  const bool rooted = call->what == CGL_REDUCE || call->what == CGL_BROADCAST;
  int n = snprintf(claim->text, sizeof claim->text, "%s", operation);
  if (call->what != CGL_BARRIER)
    n += snprintf(claim->text + n, sizeof claim->text - (size_t)n,
                  "%s%s of %zu %s", reduces ? " " : "",
                  reduces ? operation_names[call->operation] : "", call->count,
                  cgl_type_name(call->type));
  if (rooted)
    n += snprintf(claim->text + n, sizeof claim->text - (size_t)n, ", root %d",
                  call->root);
  if (captured)
    snprintf(claim->text + n, sizeof claim->text - (size_t)n, ", in a capture");
  snprintf(claim->site, sizeof claim->site, "%s", cgl_site_text(cgl_site_here));
}


static cgl_status claims_compare(const cgl_group *group,
                                 const cgl_ranks_claim *claims,
                                 const char *operation) {
  const cgl_ranks_claim *mine = &claims[group->rank];
  for (int i = 0; i < group->size; i++)
    if (strcmp(claims[i].text, mine->text) != 0) {
      cgl_fail(CGL_ERROR_RANKS, operation,
               "rank %d issues %s at %s, and rank %d issues %s at %s",
               group->members[group->rank], mine->text, mine->site,
               group->members[i], claims[i].text, claims[i].site);
      return cgl_fail_hint("all ranks of a group issue the same collectives in "
                           "the same order");
    }
  return CGL_OK;
}


cgl_status cgl_ranks_check(const cgl_group *group, const char *operation,
                           const cgl_mpi_call *call, bool captured) {
  const char *wish = getenv("CGRAPHLUA_RANKS_CHECK");
  if (!wish || strcmp(wish, "1") != 0)
    return CGL_OK;
  cgl_ranks_claim mine;
  cgl_ranks_claim *claims = calloc((size_t)group->size, sizeof *claims);
  if (!claims)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to compare");
  memset(&mine, 0, sizeof mine);
  claim_write(&mine, operation, call, captured);
  const cgl_mpi_call gather = {.what = CGL_ALL_GATHER,
                               .type = CGL_TYPE_uint8,
                               .count = sizeof mine,
                               .from = &mine,
                               .to = claims};
  cgl_ranks_do(group, &gather, operation);
  cgl_status status = claims_compare(group, claims, operation);
  free(claims);
  return status;
}
