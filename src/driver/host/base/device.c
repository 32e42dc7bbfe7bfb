/* The device's settings, read once from the environment. */
#include "driver/host/base/base.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  size_t memory;
  bool tight;
  unsigned threads;
  double kernel_seconds;
  char complaint[300];
} device;

static pthread_once_t once = PTHREAD_ONCE_INIT;


/* Reads digits, with a point in every locale; *end is past them. */
static double parse_decimal(const char *text, const char **end) {
  double value = 0, place = 1;
  bool fraction = false;
  for (; (*text >= '0' && *text <= '9') || (*text == '.' && !fraction);
       text++) {
    if (*text == '.') {
      fraction = true;
      continue;
    }
    place *= fraction ? 0.1 : 1;
    value = fraction ? value + place * (*text - '0') : 10 * value + *text - '0';
  }
  *end = text;
  return value;
}


/* "12", "64M", "1.5G"; 0 when it is not a size. */
static size_t parse_size(const char *text) {
  const char *end;
  double value = parse_decimal(text, &end);
  if (!(value > 0))
    return 0;
  static const char units[] = "kKmMgGtT";
  const char *unit = *end ? strchr(units, *end) : NULL;
  for (long i = unit ? (unit - units) / 2 : -1; i >= 0; i--)
    value *= 1024;
  end += unit != NULL;
  if (*end)
    return 0;
  return value < 0x1p62 ? (size_t)value : (size_t)1 << 62;
}


/* 0: not a valid thread count. */
static unsigned parse_threads(const char *text) {
  char *end;
  unsigned long n = strtoul(text, &end, 10);
  if (end == text || *end || strchr(text, '-'))
    return 0;
  return n > HOST_MAX_WORKERS ? HOST_MAX_WORKERS : (unsigned)n;
}


/* 0: no limit; -1: not a valid number of seconds. */
static double parse_seconds(const char *text) {
  const char *end;
  double value = parse_decimal(text, &end);
  return end == text || *end || value > HOST_MAX_SECONDS ? -1 : value;
}


/* Three variables at most: their texts are cut, not the sentence. */
static void add_complaint(const char *variable, const char *text,
                          const char *wanted) {
  size_t used = strlen(device.complaint);
  snprintf(device.complaint + used, sizeof device.complaint - used,
           "%s$%s is '%.20s', which is not %s and is ignored", used ? "; " : "",
           variable, text, wanted);
}


static void read_settings(void) {
  const char *text = getenv("CGRAPHLUA_HOST_MEMORY");
  device.memory = text ? parse_size(text) : 0;
  if (text && *text && !device.memory)
    add_complaint("CGRAPHLUA_HOST_MEMORY", text, "a valid size such as 512M");
  if (!device.memory)
    device.memory =
        (size_t)sysconf(_SC_PHYS_PAGES) / 2 * (size_t)sysconf(_SC_PAGESIZE);
  text = getenv("CGRAPHLUA_HOST_GUARD");
  device.tight = text && strcmp(text, "0") && *text;
  text = getenv("CGRAPHLUA_HOST_THREADS");
  device.threads = text ? parse_threads(text) : 0;
  if (text && *text && !device.threads)
    add_complaint("CGRAPHLUA_HOST_THREADS", text, "a valid thread count");
  text = getenv("CGRAPHLUA_KERNEL_SECONDS");
  device.kernel_seconds = text && *text ? parse_seconds(text) : 0;
  if (device.kernel_seconds < 0)
    add_complaint("CGRAPHLUA_KERNEL_SECONDS", text,
                  "a valid number of seconds");
}


size_t host_device_memory(void) {
  pthread_once(&once, read_settings);
  return device.memory;
}


const char *host_device_complaint(void) {
  pthread_once(&once, read_settings);
  return device.complaint;
}


bool host_device_guard_tight(void) {
  pthread_once(&once, read_settings);
  return device.tight;
}


double host_device_kernel_seconds(void) {
  pthread_once(&once, read_settings);
  return device.kernel_seconds > 0 ? device.kernel_seconds : 0;
}


unsigned host_device_threads(void) {
  pthread_once(&once, read_settings);
  return device.threads;
}
