#include "cli/options.h"

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


static bool option_refuse(cgl_options *o, const char *what,
                          const char *option) {
  snprintf(o->wrong, sizeof o->wrong, "%s '%s'", what, option);
  return false;
}


/* The value of the option at argv[*i]: what is joined to it, or the next
   argument, or NULL. */
static const char *value_of(int argc, char **argv, int *i, const char *joined) {
  if (*joined)
    return joined;
  if (*i + 1 >= argc)
    return NULL;
  return argv[++*i];
}


static bool *flag_of(cgl_options *o, const char *arg) {
  const struct {
    const char *name;
    bool *flag;
  } flags[] = {{"-i", &o->interactive},    {"-v", &o->version},
               {"--version", &o->version}, {"-h", &o->help},
               {"--help", &o->help},       {"-E", &o->no_environment}};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (!strcmp(arg, flags[i].name))
      return flags[i].flag;
  return NULL;
}


static bool option_parse(cgl_options *o, int argc, char **argv, int *i) {
  static const char device[] = "--device";
  const char *arg = argv[*i], *value;
  const bool acts = arg[1] == 'e' || arg[1] == 'l';
  bool *flag = flag_of(o, arg);
  if (flag) {
    *flag = true;
    return true;
  }
  if (acts)
    value = value_of(argc, argv, i, arg + 2);
  else if (!strcmp(arg, device))
    value = value_of(argc, argv, i, "");
  else if (!strncmp(arg, "--device=", sizeof device))
    value = arg + sizeof device;
  else
    return option_refuse(o, "unknown option", arg);
  if (!value || (!acts && !*value))
    return option_refuse(o, "a value is missing after", acts ? arg : device);
  if (acts)
    o->actions[o->nactions++] = (cgl_action){.kind = arg[1], .text = value};
  else
    o->device = value;
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
    if (!option_parse(o, argc, argv, &i))
      return false;
  }
  o->script = i < argc ? i : argc;
  return true;
}


void cgl_options_free(cgl_options *o) {
  free(o->actions);
  o->actions = NULL;
}
