# What is looked for beyond pkg-config: LuaJIT's static archive, the Lua
# folders, libedit, and the tools that only the tests need.

# The program carries LuaJIT whole: C modules written for Lua look their
# lua_* symbols up in it.  Without the archive it links the shared library,
# which such modules find as well.
AC_DEFUN([CGL_LUAJIT], [
  PKG_CHECK_MODULES([LUAJIT], [luajit >= 2.1])
  PKG_CHECK_VAR([LUAJIT_LIBDIR], [luajit], [libdir])
  LUAJIT_VERSION=`$PKG_CONFIG --modversion luajit`
  AC_CACHE_CHECK([for LuaJIT's static archive], [cgl_cv_luajit_archive], [
    cgl_cv_luajit_archive=no
    cgl_archive=$LUAJIT_LIBDIR/libluajit-5.1.a
    AS_IF([test -r "$cgl_archive"], [
      cgl_saved=$LIBS
      cgl_saved_cflags=$CFLAGS
      CFLAGS="$CFLAGS $LUAJIT_CFLAGS"
      LIBS="-Wl,--whole-archive,$cgl_archive,--no-whole-archive -lm -ldl $LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <lua.h>
#include <lauxlib.h>]], [[return luaL_newstate() == 0;]])],
        [cgl_cv_luajit_archive=$cgl_archive])
      LIBS=$cgl_saved
      CFLAGS=$cgl_saved_cflags
    ])
  ])
  AS_VAR_IF([cgl_cv_luajit_archive], [no],
    [LUAJIT_LINKAGE=shared
     LUAJIT_PROGRAM_LIBS=$LUAJIT_LIBS],
    [LUAJIT_LINKAGE=static
     LUAJIT_PROGRAM_LIBS="-Wl,--whole-archive,$cgl_cv_luajit_archive,--no-whole-archive -lm -ldl"])
  AC_SUBST([LUAJIT_PROGRAM_LIBS])

  AC_ARG_WITH([luadir],
    [AS_HELP_STRING([--with-luadir=DIR],
      [where Lua files go @<:@DATADIR/lua/5.1@:>@])],
    [luadir=$withval], [luadir='${datadir}/lua/5.1'])
  AC_ARG_WITH([luacdir],
    [AS_HELP_STRING([--with-luacdir=DIR],
      [where Lua's C modules go @<:@LIBDIR/lua/5.1@:>@])],
    [luacdir=$withval], [luacdir='${libdir}/lua/5.1'])
  AC_SUBST([luadir])
  AC_SUBST([luacdir])
])

AC_DEFUN([CGL_LIBEDIT], [
  AC_ARG_WITH([libedit],
    [AS_HELP_STRING([--with-libedit],
      [edit lines in the REPL @<:@auto@:>@])],
    [], [with_libedit=auto])
  LIBEDIT_CPPFLAGS=
  AS_VAR_IF([with_libedit], [no], [], [
    PKG_CHECK_MODULES([LIBEDIT], [libedit >= 3.0],
      [with_libedit=libedit
       LIBEDIT_CPPFLAGS=-DCGL_WITH_LIBEDIT=1],
      [AS_VAR_IF([with_libedit], [auto], [with_libedit=no],
        [AC_MSG_ERROR([--with-libedit: libedit was not found])])])
  ])
  AC_SUBST([LIBEDIT_CPPFLAGS])
])

AC_DEFUN([CGL_TEST_TOOLS], [
  AC_ARG_VAR([BUSTED], [busted's script, for make check])
  AC_PATH_PROG([BUSTED], [busted])
  AC_PATH_PROG([LUACHECK], [luacheck])
  AC_PATH_PROG([MANDOC], [mandoc])
])
