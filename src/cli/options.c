#include "cli/options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>


void cgl_options_usage(FILE *out) {
  fputs("usage: cgraphlua [options] [script | file of graphs [args]]\n"
        "  -e chunk      run the string 'chunk'\n"
        "  -l name       require the module 'name'\n"
        "  -i            enter the REPL after the script\n"
        "  -v            show versions and every device\n"
        "  -E            ignore environment variables\n"
        "  --device D    use device D: host, cuda or cuda:N\n"
        "  --plan        print the plan of each graph that is captured\n"
        "  --ranks N     N processes that work together, by mpirun or srun\n"
        "  --compile S   run the script S and write its compiled kernels\n"
        "  --out F       the folder that --compile writes to\n"
        "  --arch LIST   also for GPUs: sm_80,sm_90 or compute_90 (PTX)\n"
        "  --inspect F   list what is in the file of graphs F\n"
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
               {"--help", &o->help},       {"-E", &o->no_environment},
               {"--plan", &o->plans}};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (!strcmp(arg, flags[i].name))
      return flags[i].flag;
  return NULL;
}


/* A word with a value, joined by '=' or the next argument: its field in *field,
   its name returned; NULL for another word. */
static const char *word_of(cgl_options *o, const char *arg,
                           const char ***field) {
  const struct {
    const char *name;
    const char **field;
  } words[] = {{"--device", &o->device},     {"--compile", &o->compiled},
               {"--out", &o->out},           {"--arch", &o->arch},
               {"--inspect", &o->inspected}, {"--ranks", &o->ranks}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i].name);
    if (!strncmp(arg, words[i].name, n) && (!arg[n] || arg[n] == '=')) {
      *field = words[i].field;
      return words[i].name;
    }
  }
  return NULL;
}


static bool option_parse(cgl_options *o, int argc, char **argv, int *i) {
  const char *arg = argv[*i], *value, **field = NULL;
  const bool acts = arg[1] == 'e' || arg[1] == 'l';
  bool *flag = flag_of(o, arg);
  if (flag) {
    *flag = true;
    return true;
  }
  const char *word = acts ? arg : word_of(o, arg, &field);
  if (!word)
    return option_refuse(o, "unknown option", arg);
  if (acts)
    value = value_of(argc, argv, i, arg + 2);
  else
    value = arg[strlen(word)] ? arg + strlen(word) + 1
                              : value_of(argc, argv, i, "");
  if (!value || (!acts && !*value))
    return option_refuse(o, "a value is missing after", word);
  if (acts)
    o->actions[o->nactions++] = (cgl_action){.kind = arg[1], .text = value};
  else
    *field = value;
  return true;
}


/* Puts the script of --compile where a script stands: before its own
   arguments, argv[end] and on. */
static void script_move(cgl_options *o, char **argv, int end) {
  static const char joined[] = "--compile=";
  int at = 1;
  while (argv[at] != o->compiled &&
         strncmp(argv[at], joined, sizeof joined - 1))
    at++;
  for (; at + 1 < end; at++)
    argv[at] = argv[at + 1];
  argv[end - 1] = (char *)(uintptr_t)o->compiled;
  o->script = end - 1;
}


/* What --compile needs, and needs it. */
static bool check_compile(cgl_options *o) {
  if (o->compiled && !o->out)
    return option_refuse(o, "the folder is missing: --compile needs", "--out");
  if (o->compiled && o->interactive)
    return option_refuse(o, "--compile does not take", "-i");
  if (!o->compiled && (o->out || o->arch))
    return option_refuse(o, "only --compile takes",
                         o->out ? "--out" : "--arch");
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
  if (!check_compile(o))
    return false;
  if (o->compiled)
    script_move(o, argv, i);
  return true;
}


void cgl_options_free(cgl_options *o) {
  free(o->actions);
  o->actions = NULL;
}
