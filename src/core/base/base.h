/* What every room of the core uses: objects and their end, failures and sites,
   contexts, captures underway. */
#ifndef CGL_BASE_BASE_H
#define CGL_BASE_BASE_H

#include "core/base/captures.h"
#include "core/base/context.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/object.h"

#endif
