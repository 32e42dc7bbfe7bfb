/* An engine with SDL2 that embeds LuaJIT: scripts say what moves and how it
   looks, the engine shows it.
     cc engine.c $(pkg-config --cflags --libs cgraphlua-lua luajit sdl2) -o
   engine
     ./engine                                 plays waves.lua
     ./engine --frames N --picture FILE.bmp   saves frame N, and ends
   While it plays, the left button drops stones; R, and every change of the
   script's file, load the script anew.
   A script runs in a Lua state and on a stream of its own.  It gets the
   engine's pixels and pointer, and returns three functions:
     ready()       whether its kernels, compiled in the background, are there
     start(token)  captures a frame, and returns the graph; the token is of
                   what the version before it kept, or nil
     keep()        shares what its next version goes on with; returns the token
   The engine replays the graph once a frame, and downloads the pixels into
   SDL's texture: one copy.  The old version plays until the new one has
   started, and goes on when the new one fails.
   A mod is one more `script`: script_open is the place that says what its state
   may do. */
#include <SDL.h>
#include <cgraphlua.h>
#include <cgraphlua/lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WIDTH = 640, HEIGHT = 360, SCALE = 2 };

/* The pointer's numbers, as the script sees them. */
enum { COLUMN, ROW, PRESSED, FRAME, POINTER_COUNT };

typedef struct script {
  lua_State *L; /* NULL: there is no script */
  cgl_stream *stream;
  cgl_graph *graph; /* of one frame; NULL until it has started */
} script;

typedef struct engine {
  const char *path;        /* the script's file */
  struct timespec changed; /* when it was written, as of the last load */
  SDL_Window *window;
  SDL_Renderer *renderer;
  SDL_Texture *texture;
  cgl_context *context;
  cgl_stream *stream;  /* the engine's own */
  cgl_buffer *pixels;  /* a row after the other, as in the texture */
  cgl_pinned *pointer; /* int32, written between frames */
  script playing, loading;
  long frames; /* shown */
} engine;


static bool complain(const char *what, const char *why) {
  SDL_Log("%s: %s", what, why);
  return false;
}


/* ---- scripts ---- */

typedef struct opening {
  engine *e;
  script *s;
} opening;


/* In a protected call: what raises is told by script_open. */
static int open_protected(lua_State *L) {
  opening *o = lua_touserdata(L, 1);
  const cgl_lua_desc desc = {.errors = CGL_LUA_ERRORS_STRING,
                             .stream = o->s->stream};
  luaL_openlibs(L);
  cgl_lua_open(L, &desc);
  lua_setfield(L, LUA_REGISTRYINDEX, "engine.cg");
  if (luaL_loadfile(L, o->e->path))
    return lua_error(L);
  lua_pushinteger(L, WIDTH);
  lua_pushinteger(L, HEIGHT);
  cgl_lua_push_buffer(L, o->e->pixels);
  cgl_lua_push_pinned(L, o->e->pointer);
  lua_call(L, 4, 1);
  if (!lua_istable(L, -1))
    return luaL_error(L, "%s returns no table", o->e->path);
  lua_setfield(L, LUA_REGISTRYINDEX, "engine.script");
  return 0;
}


static void script_close(script *s) {
  cgl_graph_release(s->graph);
  if (s->L)
    lua_close(s->L);
  cgl_stream_release(s->stream);
  memset(s, 0, sizeof *s);
}


/* Runs the script's file in a state and on a stream of its own. */
static bool script_open(engine *e, script *s) {
  opening o = {e, s};
  if (cgl_stream_create(e->context, 0, &s->stream))
    return complain("stream", cgl_last_error()->message);
  s->L = luaL_newstate();
  if (s->L && !lua_cpcall(s->L, open_protected, &o))
    return true;
  complain(e->path, s->L ? lua_tostring(s->L, -1) : "no memory");
  script_close(s);
  return false;
}


/* Calls a function of a table in the registry with an argument (NULL: nil);
   leaves one result, or what it raised. */
static bool script_try(script *s, const char *table, const char *name,
                       const char *argument) {
  lua_settop(s->L, 0);
  lua_getfield(s->L, LUA_REGISTRYINDEX, table);
  lua_getfield(s->L, 1, name);
  lua_pushstring(s->L, argument);
  return !lua_pcall(s->L, 1, 1, 0);
}


/* A function of the script's; what it raises is told. */
static bool script_call(script *s, const char *name, const char *argument) {
  return script_try(s, "engine.script", name, argument) ||
         complain(name, lua_tostring(s->L, -1));
}


/* Starts the script that was loaded, and closes the one before it.  When it
   cannot start, the one before it takes back what it shared, and plays on. */
static bool script_swap(engine *e) {
  script *old = &e->playing, *new = &e->loading;
  char token[64] = "";
  if (old->L && script_call(old, "keep", NULL) && lua_isstring(old->L, -1))
    SDL_strlcpy(token, lua_tostring(old->L, -1), sizeof token);
  if (script_call(new, "start", *token ? token : NULL)) {
    cgl_graph *graph = cgl_lua_to_graph(new->L, -1);
    new->graph = graph ? cgl_graph_retain(graph) : NULL;
    if (!graph)
      complain(e->path, "start returns no graph");
  }
  if (!new->graph) {
    script_close(new);
    if (*token) /* it fails when the token was taken */
      (void)script_try(old, "engine.cg", "take", token);
    return false;
  }
  script_close(old);
  *old = *new;
  memset(new, 0, sizeof *new);
  SDL_Log("%s plays", e->path);
  return true;
}


/* Whether the file was written since it was loaded; a file that is being
   replaced is looked at again in the next frame. */
static bool script_changed(engine *e) {
  struct stat file;
  if (stat(e->path, &file) ||
      !memcmp(&file.st_mtim, &e->changed, sizeof e->changed))
    return false;
  e->changed = file.st_mtim;
  return true;
}


/* One step of a load; false when it failed, and no script plays. */
static bool script_step(engine *e, bool wanted) {
  bool good = true;
  if (script_changed(e) || wanted) {
    script_close(&e->loading);
    good = script_open(e, &e->loading);
  }
  if (e->loading.L) {
    good = script_call(&e->loading, "ready", NULL);
    if (!good)
      script_close(&e->loading);
    else if (lua_toboolean(e->loading.L, -1))
      good = script_swap(e);
  }
  return good || e->playing.L;
}


/* ---- frames ---- */

/* Replays the graph, and has the pixels in the texture; `picture`: and in a
   file. */
static bool frame_draw(engine *e, const char *picture) {
  SDL_Surface *surface;
  const size_t bytes = sizeof(Uint32) * WIDTH * HEIGHT;
  cgl_status status = cgl_graph_replay(e->playing.graph, e->playing.stream, 1);
  if (SDL_LockTextureToSurface(e->texture, NULL, &surface))
    return complain("texture", SDL_GetError());
  if (surface->pitch != sizeof(Uint32) * WIDTH)
    return complain("texture", "its rows have gaps");
  if (!status)
    status = cgl_buffer_download(e->pixels, e->playing.stream, 0,
                                 surface->pixels, bytes);
  const int saved = !picture || !SDL_SaveBMP(surface, picture);
  SDL_UnlockTexture(e->texture);
  if (status)
    return complain("frame", cgl_last_error()->message);
  return saved || complain(picture, SDL_GetError());
}


/* Reads what the user did: false when the window was closed. */
static bool events_read(engine *e, bool *reload) {
  SDL_Event event;
  *reload = false;
  while (SDL_PollEvent(&event)) {
    if (event.type == SDL_QUIT)
      return false;
    if (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_r)
      *reload = true;
  }
  int x, y, *numbers = cgl_pinned_data(e->pointer);
  numbers[PRESSED] = SDL_GetMouseState(&x, &y) & SDL_BUTTON_LMASK;
  numbers[COLUMN] = x / SCALE;
  numbers[ROW] = y / SCALE;
  numbers[FRAME] = (int)e->frames;
  return true;
}


static bool play(engine *e, long frames, const char *picture) {
  bool reload;
  while (events_read(e, &reload)) {
    if (!script_step(e, reload))
      return false;
    if (e->playing.graph) {
      const bool last = ++e->frames == frames;
      if (!frame_draw(e, last ? picture : NULL))
        return false;
      if (last)
        return true;
    }
    SDL_RenderCopy(e->renderer, e->texture, NULL, NULL);
    SDL_RenderPresent(e->renderer);
  }
  return true;
}


/* ---- start and end ---- */

static bool show_open(engine *e) {
  if (SDL_Init(SDL_INIT_VIDEO))
    return complain("SDL", SDL_GetError());
  e->window = SDL_CreateWindow("Waves, by cgraphlua", SDL_WINDOWPOS_CENTERED,
                               SDL_WINDOWPOS_CENTERED, WIDTH * SCALE,
                               HEIGHT * SCALE, 0);
  if (e->window)
    e->renderer = SDL_CreateRenderer(e->window, -1, SDL_RENDERER_PRESENTVSYNC);
  if (e->renderer)
    e->texture = SDL_CreateTexture(e->renderer, SDL_PIXELFORMAT_ARGB8888,
                                   SDL_TEXTUREACCESS_STREAMING, WIDTH, HEIGHT);
  return e->texture || complain("window", SDL_GetError());
}


static void log_show(void *user, const char *message, cgl_log_level level) {
  (void)user;
  SDL_Log("%s: %s", cgl_log_level_name(level), message);
}


static bool device_open(engine *e) {
  cgl_set_log(log_show, NULL);
  cgl_status status = cgl_context_open(NULL, &e->context);
  if (!status)
    status = cgl_stream_create(e->context, 0, &e->stream);
  if (!status)
    status = cgl_buffer_create(e->stream, NULL, CGL_TYPE_uint32,
                               (size_t)WIDTH * HEIGHT, &e->pixels);
  if (!status)
    status = cgl_pinned_create(e->context, CGL_TYPE_int32, POINTER_COUNT,
                               &e->pointer);
  return !status || complain("device", cgl_last_error()->message);
}


/* In any state of what was opened. */
static void engine_close(engine *e) {
  script_close(&e->loading);
  script_close(&e->playing);
  cgl_pinned_release(e->pointer);
  cgl_buffer_release(e->pixels);
  cgl_stream_release(e->stream);
  cgl_context_release(e->context);
  if (e->texture)
    SDL_DestroyTexture(e->texture);
  if (e->renderer)
    SDL_DestroyRenderer(e->renderer);
  if (e->window)
    SDL_DestroyWindow(e->window);
  SDL_Quit();
}


int main(int argc, char **argv) {
  engine e = {.path = "waves.lua"};
  const char *picture = NULL;
  long frames = -1;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--frames") && i + 1 < argc)
      frames = atol(argv[++i]);
    else if (!strcmp(argv[i], "--picture") && i + 1 < argc)
      picture = argv[++i];
    else if (*argv[i] != '-')
      e.path = argv[i];
    else
      return SDL_Log("engine [--frames N] [--picture FILE.bmp] [script]"), 2;
  }
  const bool good =
      show_open(&e) && device_open(&e) && play(&e, frames, picture);
  engine_close(&e);
  return !good;
}
