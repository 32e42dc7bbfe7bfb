/* The command line, read once and before anything else happens.
   Invariant: after cgl_options_parse succeeded, every field is final; what
   follows the script's name is the script's own and was not looked at.
   The script of --compile stands before other options: it is moved behind
   them in argv.
   Values may be joined to their option (-lffi, --device=host) or follow it
   (-l ffi, --device host), as in LuaJIT's own program. */
#ifndef CGL_CLI_OPTIONS_H
#define CGL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

typedef struct cgl_action {
  char kind;        /* 'e': run the chunk, 'l': require the module */
  const char *text; /* borrowed from argv */
} cgl_action;

typedef struct cgl_options {
  bool interactive;      /* -i */
  bool version;          /* -v */
  bool help;             /* -h */
  bool no_environment;   /* -E */
  bool plans;            /* --plan */
  const char *device;    /* --device's value, or NULL; borrowed from argv */
  const char *compiled;  /* --compile's value, or NULL; borrowed from argv */
  const char *out;       /* --out's value, or NULL; borrowed from argv */
  const char *arch;      /* --arch's value, or NULL; borrowed from argv */
  const char *inspected; /* --inspect's value, or NULL; borrowed from argv */
  const char *ranks;     /* --ranks' value, or NULL; borrowed from argv */
  int script;            /* argv's index of the script or "-"; or argc */
  int nactions;        /* entries of `actions`, in the order they were given */
  cgl_action *actions; /* owned; argc entries have room */
  char wrong[160];     /* what was wrong, when parsing failed */
} cgl_options;

/* Reads argv into `o`; false leaves the reason in `o->wrong`.  The caller
   ends with cgl_options_free either way. */
bool cgl_options_parse(cgl_options *o, int argc, char **argv);

void cgl_options_free(cgl_options *o);

/* Writes the usage text, which names every option. */
void cgl_options_usage(FILE *out);

#endif
