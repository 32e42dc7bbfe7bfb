#include "options.h"

#include <stdlib.h>
#include <string.h>


void cgl_options_usage(FILE *out) {
  fputs("usage: cgraphlua [options] [script [args]]\n"
        "  -e chunk      run the string 'chunk'\n"
        "  -l name       require the module 'name'\n"
        "  -i            enter the REPL after the script\n"
        "  -v            show versions and every device\n"
        "  -E            ignore environment variables\n"
        "  --device D    use device D: host, cuda or cuda:N\n"
        "  -h, --help    show this text\n"
        "  --            end of options\n"
        "  -             run standard input, and end of options\n",
        out);
}


static bool refuse(cgl_options *o, const char *what, const char *option) {
  snprintf(o->wrong, sizeof o->wrong, "%s '%s'", what, option);
  return false;
}


/* The value of the option at argv[*i]: what is joined to it, or the next
   argument; NULL when there is none. */
static const char *value_of(int argc, char **argv, int *i, const char *joined) {
  if (*joined)
    return joined;
  if (*i + 1 >= argc)
    return NULL;
  return argv[++*i];
}


static bool parse_short(cgl_options *o, int argc, char **argv, int *i) {
  const char *arg = argv[*i];
  switch (arg[1]) {
  case 'e':
  case 'l': {
    const char *text = value_of(argc, argv, i, arg + 2);
    if (!text)
      return refuse(o, "a value is missing after", arg);
    o->actions[o->nactions].kind = arg[1];
    o->actions[o->nactions++].text = text;
    return true;
  }
  default:
    break;
  }
  if (arg[2])
    return refuse(o, "unknown option", arg);
  switch (arg[1]) {
  case 'i':
    o->interactive = true;
    return true;
  case 'v':
    o->version = true;
    return true;
  case 'h':
    o->help = true;
    return true;
  case 'E':
    o->no_environment = true;
    return true;
  default:
    return refuse(o, "unknown option", arg);
  }
}


static bool parse_long(cgl_options *o, int argc, char **argv, int *i) {
  static const char device[] = "--device";
  const char *arg = argv[*i];
  if (!strcmp(arg, "--help")) {
    o->help = true;
    return true;
  }
  if (!strcmp(arg, "--version")) {
    o->version = true;
    return true;
  }
  if (!strcmp(arg, device)) {
    o->device = value_of(argc, argv, i, "");
  } else if (!strncmp(arg, "--device=", sizeof device)) {
    o->device = arg + sizeof device;
  } else {
    return refuse(o, "unknown option", arg);
  }
  if (!o->device || !*o->device)
    return refuse(o, "a value is missing after", device);
  return true;
}


bool cgl_options_parse(cgl_options *o, int argc, char **argv) {
  memset(o, 0, sizeof *o);
  o->actions = calloc((size_t)argc + 1, sizeof *o->actions);
  if (!o->actions) {
    snprintf(o->wrong, sizeof o->wrong, "not enough memory");
    return false;
  }
  int i = 1;
  for (; i < argc; i++) {
    const char *arg = argv[i];
    if (arg[0] != '-' || !arg[1])
      break;
    if (!strcmp(arg, "--")) {
      i++;
      break;
    }
    if (!(arg[1] == '-' ? parse_long : parse_short)(o, argc, argv, &i))
      return false;
  }
  o->script = i < argc ? i : argc;
  return true;
}


void cgl_options_free(cgl_options *o) {
  free(o->actions);
  o->actions = NULL;
}
