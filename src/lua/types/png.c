/* PNG files on libpng: core.png, which lua/cgraphlua/image.lua turns into
   cgraphlua.image.
   Invariant: whatever a call holds (the file, libpng's structures, the
   pixels) belongs to one userdata with a finalizer, so a Lua error anywhere
   leaks nothing; libpng's longjmp never crosses a Lua frame. */
#include "lua/types/types.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <png.h>

#define IMAGE_TYPE "cgraphlua.png"

enum { MESSAGE_BYTES = 512, SIDE_LIMIT = 1 << 20 };

/* A file that is being read or written. */
typedef struct image {
  FILE *file;
  png_structp png; /* a read or a write structure, as `writing` says */
  png_infop info;
  bool writing;
  uint32_t width, height, channels;
  unsigned char *pixels; /* owned when reading, NULL when writing */
  char *target;          /* where the file goes in the end */
  char *temporary;       /* the name it has until then; NULL once renamed */
  jmp_buf escape;        /* where a libpng error goes */
  char message[MESSAGE_BYTES];
} image;


static void image_close(image *im) {
  if (im->png && im->writing)
    png_destroy_write_struct(&im->png, &im->info);
  else if (im->png)
    png_destroy_read_struct(&im->png, &im->info, NULL);
  im->png = NULL;
  if (im->file)
    fclose(im->file);
  im->file = NULL;
  if (im->temporary)
    unlink(im->temporary);
  free(im->temporary);
  free(im->target);
  free(im->pixels);
  im->temporary = im->target = NULL;
  im->pixels = NULL;
}


static int image_gc(lua_State *L) {
  image_close(luaL_checkudata(L, 1, IMAGE_TYPE));
  return 0;
}


static image *image_push(lua_State *L) {
  image *im = lua_newuserdata(L, sizeof *im);
  memset(im, 0, sizeof *im);
  luaL_getmetatable(L, IMAGE_TYPE);
  lua_setmetatable(L, -2);
  return im;
}


__attribute__((format(printf, 2, 3))) static bool
image_fail(image *im, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(im->message, sizeof im->message, format, args);
  va_end(args);
  return false;
}


/* Called by libpng at an error: keeps the text and leaves libpng. */
static void on_error(png_structp png, png_const_charp text) {
  image *im = png_get_error_ptr(png);
  if (!im->message[0])
    image_fail(im, "%s", text);
  longjmp(im->escape, 1);
}


/* Ignored: warnings are of unknown chunks, colour profiles and the like. */
static void on_warning(png_structp png, png_const_charp text) {
  (void)png;
  (void)text;
}


static void image_read_bytes(png_structp png, png_bytep out, size_t n) {
  image *im = png_get_io_ptr(png);
  if (fread(out, 1, n, im->file) == n)
    return;
  if (ferror(im->file))
    image_fail(im, "%s", strerror(errno));
  else
    image_fail(im, "the file is truncated: it ends inside the picture");
  png_error(png, "read");
}


static void image_write_bytes(png_structp png, png_bytep data, size_t n) {
  image *im = png_get_io_ptr(png);
  if (fwrite(data, 1, n, im->file) == n)
    return;
  image_fail(im, "%s", strerror(errno));
  png_error(png, "write");
}


static void image_flush_bytes(png_structp png) {
  (void)png; /* fclose flushes, and is checked */
}


/* Opens `path` and checks that it is a PNG file. */
static bool image_open_source(image *im, const char *path) {
  unsigned char magic[8];
  struct stat st;
  im->file = fopen(path, "rbe");
  if (!im->file)
    return image_fail(im, "%s", strerror(errno));
  if (!fstat(fileno(im->file), &st) && S_ISDIR(st.st_mode))
    return image_fail(im, "%s", strerror(EISDIR));
  size_t n = fread(magic, 1, sizeof magic, im->file);
  if (n == 0 && !ferror(im->file))
    return image_fail(im, "the file is empty");
  if (n != sizeof magic || png_sig_cmp(magic, 0, n))
    return image_fail(im, "not a PNG file");
  return true;
}


/* Has libpng deliver 8-bit gray or RGB, with alpha where the file has it. */
static void image_ask_for_bytes(image *im) {
  png_byte type = png_get_color_type(im->png, im->info);
  if (type == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(im->png);
  if (type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(im->png, im->info) < 8)
    png_set_expand_gray_1_2_4_to_8(im->png);
  if (png_get_valid(im->png, im->info, PNG_INFO_tRNS))
    png_set_tRNS_to_alpha(im->png);
  png_set_scale_16(im->png);
  png_set_interlace_handling(im->png);
  png_read_update_info(im->png, im->info);
}


static bool image_read(image *im, const char *path, uint32_t max_size) {
  if (!image_open_source(im, path))
    return false;
  im->png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, im, on_error, on_warning);
  if (im->png)
    im->info = png_create_info_struct(im->png);
  if (!im->info)
    return image_fail(im, "not enough memory");
  if (setjmp(im->escape))
    return false;
  png_set_read_fn(im->png, im, image_read_bytes);
  png_set_user_limits(im->png, 0x7fffffff, 0x7fffffff);
  png_set_sig_bytes(im->png, 8);
  png_read_info(im->png, im->info);
  im->width = png_get_image_width(im->png, im->info);
  im->height = png_get_image_height(im->png, im->info);
  if (im->width > max_size || im->height > max_size)
    return image_fail(im,
                      "the picture is %u x %u, larger than %u on a side; "
                      "pass {max_size = %u} to read it all the same",
                      im->width, im->height, max_size,
                      im->width > im->height ? im->width : im->height);
  image_ask_for_bytes(im);
  im->channels = png_get_channels(im->png, im->info);
  size_t pitch = png_get_rowbytes(im->png, im->info);
  if (pitch != (size_t)im->width * im->channels)
    return image_fail(im, "libpng answered with rows of %zu bytes", pitch);
  im->pixels = malloc(pitch * im->height);
  if (!im->pixels)
    return image_fail(im, "not enough memory for %u x %u pixels", im->width,
                      im->height);
  /* An interlaced file comes in several passes over the same rows. */
  int passes = png_get_interlace_type(im->png, im->info) ? 7 : 1;
  for (int pass = 0; pass < passes; pass++)
    for (uint32_t y = 0; y < im->height; y++)
      png_read_row(im->png, im->pixels + y * pitch, NULL);
  png_read_end(im->png, NULL);
  return true;
}


/* Pushes nil and the message; closes the file. */
static int image_push_failure(lua_State *L, image *im) {
  lua_pushnil(L);
  lua_pushstring(L, im->message);
  image_close(im);
  return 2;
}


/* png.read(path, max_size) returns width, height, channels (1 gray, 2 gray and
   alpha, 3 RGB, 4 RGBA), pixels (a string, 8 bits a channel, top row first);
   or nil and a message. */
static int png_read(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  lua_Number max_size = luaL_checknumber(L, 2);
  luaL_argcheck(L, max_size >= 1 && max_size <= SIDE_LIMIT, 2,
                "must be between 1 and 1048576");
  image *im = image_push(L);
  if (!image_read(im, path, (uint32_t)max_size))
    return image_push_failure(L, im);
  lua_pushnumber(L, im->width);
  lua_pushnumber(L, im->height);
  lua_pushnumber(L, im->channels);
  lua_pushlstring(L, (const char *)im->pixels,
                  (size_t)im->width * im->height * im->channels);
  image_close(im);
  return 4;
}


/* Opens a new file beside the target, which gets the target's name at the end;
   a device or a pipe must not be replaced, and is opened itself. */
static bool image_open_target(image *im, const char *path) {
  struct stat st;
  int fd;
  if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
    fd = open(path, O_WRONLY | O_CLOEXEC);
  } else {
    /* A link stays a link: the file that it names is replaced. */
    im->target = realpath(path, NULL);
    if (!im->target)
      im->target = strdup(path);
    if (!im->target || asprintf(&im->temporary, "%s.%ld.tmp", im->target,
                                (long)getpid()) < 0) {
      im->temporary = NULL;
      return image_fail(im, "not enough memory");
    }
    fd = open(im->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  }
  im->file = fd < 0 ? NULL : fdopen(fd, "wb");
  if (im->file)
    return true;
  int why = errno;
  if (fd >= 0)
    close(fd);
  return image_fail(im, "%s", strerror(why));
}


/* Closes the file and gives it its name. */
static bool image_finish_target(image *im) {
  FILE *file = im->file;
  im->file = NULL;
  if (fclose(file))
    return image_fail(im, "%s", strerror(errno));
  if (im->temporary) {
    if (rename(im->temporary, im->target))
      return image_fail(im, "%s", strerror(errno));
    free(im->temporary);
    im->temporary = NULL;
  }
  return true;
}


static bool image_write(image *im, const char *path,
                        const unsigned char *pixels, int compression) {
  static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                              PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  if (!image_open_target(im, path))
    return false;
  im->writing = true;
  im->png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, im, on_error, on_warning);
  if (im->png)
    im->info = png_create_info_struct(im->png);
  if (!im->info)
    return image_fail(im, "not enough memory");
  if (setjmp(im->escape))
    return false;
  png_set_write_fn(im->png, im, image_write_bytes, image_flush_bytes);
  png_set_user_limits(im->png, 0x7fffffff, 0x7fffffff);
  png_set_compression_level(im->png, compression);
  png_set_IHDR(im->png, im->info, im->width, im->height, 8,
               types[im->channels - 1], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(im->png, im->info);
  size_t pitch = (size_t)im->width * im->channels;
  for (uint32_t y = 0; y < im->height; y++)
    png_write_row(im->png, pixels + y * pitch);
  png_write_end(im->png, im->info);
  return image_finish_target(im);
}


static uint32_t range_read(lua_State *L, int index, double lowest,
                           double highest) {
  double x = luaL_checknumber(L, index);
  if (!(x >= lowest && x <= highest) || x != (double)(uint32_t)x)
    luaL_argerror(L, index,
                  lua_pushfstring(L,
                                  "whole number between %d and %d "
                                  "expected, got %f",
                                  (int)lowest, (int)highest, x));
  return (uint32_t)x;
}


/* png.write(path, width, height, channels, pixels, compression) returns true,
   or nil and a message; the file is complete or not there. */
static int png_write(lua_State *L) {
  size_t n;
  const char *path = luaL_checkstring(L, 1);
  uint32_t width = range_read(L, 2, 1, SIDE_LIMIT);
  uint32_t height = range_read(L, 3, 1, SIDE_LIMIT);
  uint32_t channels = range_read(L, 4, 1, 4);
  const char *pixels = luaL_checklstring(L, 5, &n);
  int compression = (int)range_read(L, 6, 0, 9);
  luaL_argcheck(L, n == (size_t)width * height * channels, 5,
                "as many bytes as width x height x channels expected");
  image *im = image_push(L);
  im->width = width;
  im->height = height;
  im->channels = channels;
  if (!image_write(im, path, (const unsigned char *)pixels, compression))
    return image_push_failure(L, im);
  image_close(im);
  lua_pushboolean(L, 1);
  return 1;
}


/* png.name_defect(path): what is wrong with the name of a file to write, which
   promises a picture of another kind; nil when nothing is. */
static int png_name_defect(lua_State *L) {
  static const char *const others[] = {
      "jpg", "jpeg", "jpe", "gif", "bmp", "tif",  "tiff", "webp", "svg",
      "pdf", "ppm",  "pgm", "pbm", "pnm", "avif", "heic", "jxl",  "exr"};
  const char *path = luaL_checkstring(L, 1);
  const char *ending = strrchr(path, '.');
  for (size_t i = 0; ending && i < sizeof others / sizeof *others; i++)
    if (!strcasecmp(ending + 1, others[i])) {
      lua_pushfstring(L, "'%s' would be a PNG file: give it the ending .png",
                      path);
      return 1;
    }
  return 0;
}


void cgl_lua_open_png(lua_State *L) {
  static const luaL_Reg functions[] = {{"read", png_read},
                                       {"write", png_write},
                                       {"name_defect", png_name_defect},
                                       {NULL, NULL}};
  if (luaL_newmetatable(L, IMAGE_TYPE)) {
    lua_pushcfunction(L, image_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushliteral(L, "png");
    lua_setfield(L, -2, "__metatable");
  }
  lua_pop(L, 1);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "png");
}
