# Warnings, sanitizers, debug checks and optimization of the whole program.  They go into our own variables, so
# that CFLAGS stays the user's.

# CGL_TRY_FLAG(FLAG, VARIABLE): adds FLAG when the compiler takes it.
AC_DEFUN([CGL_TRY_FLAG], [
  AS_VAR_PUSHDEF([cache], [cgl_cv_flag_$1])
  AC_CACHE_CHECK([whether $CC takes $1], [cache], [
    cgl_saved=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
      [AS_VAR_SET([cache], [yes])], [AS_VAR_SET([cache], [no])])
    CFLAGS=$cgl_saved
  ])
  AS_VAR_IF([cache], [yes], [$2="$$2 $1"])
  AS_VAR_POPDEF([cache])
])

AC_DEFUN([CGL_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [make every warning an error])],
    [], [enable_werror=no])
  CGL_WARN_CFLAGS=
  m4_foreach_w([flag], [-Wall -Wextra -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes], [CGL_TRY_FLAG(flag, [CGL_WARN_CFLAGS])])
  CGL_TRY_FLAG([-fvisibility=hidden], [CGL_WARN_CFLAGS])
  AS_VAR_IF([enable_werror], [no], [enable_werror=no],
    [enable_werror=yes
     CGL_WARN_CFLAGS="$CGL_WARN_CFLAGS -Werror"])
  AC_SUBST([CGL_WARN_CFLAGS])
])

AC_DEFUN([CGL_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=KIND],
      [address (with undefined behaviour), thread, or no])],
    [], [enable_sanitizers=no])
  CGL_SAN_FLAGS=
  AS_CASE([$enable_sanitizers],
    [yes|address], [enable_sanitizers=address
      CGL_SAN_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"],
    [thread], [CGL_SAN_FLAGS="-fsanitize=thread -fno-omit-frame-pointer"],
    [no], [],
    [AC_MSG_ERROR([--enable-sanitizers takes address, thread or no, not '$enable_sanitizers'])])
  AS_VAR_IF([CGL_SAN_FLAGS], [], [], [
    AC_MSG_CHECKING([whether $CC links with $enable_sanitizers sanitizers])
    cgl_saved=$CFLAGS
    CFLAGS="$CFLAGS $CGL_SAN_FLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([$CC cannot link with $CGL_SAN_FLAGS])])
    CFLAGS=$cgl_saved
  ])
  AC_SUBST([CGL_SAN_FLAGS])
  AC_SUBST([CGL_SANITIZER], [$enable_sanitizers])
])

AC_DEFUN([CGL_DEBUG_CHECKS], [
  AC_ARG_ENABLE([debug],
    [AS_HELP_STRING([--enable-debug],
      [check every object on entry and exit (slow)])],
    [], [enable_debug=no])
  AS_VAR_IF([enable_debug], [no], [CGL_DEBUG_CPPFLAGS=],
    [enable_debug=yes
     CGL_DEBUG_CPPFLAGS=-DCGL_DEBUG=1])
  AC_SUBST([CGL_DEBUG_CPPFLAGS])
  AM_CONDITIONAL([CGL_DEBUG], [test "$enable_debug" != no])
])

# Calls between a binding and the core are short: inlining across files takes a
# tenth off an allocation, a captured operation and a replay.  The objects have
# plain code too, which the tests and the static library's users link.
AC_DEFUN([CGL_LTO], [
  AC_ARG_ENABLE([lto],
    [AS_HELP_STRING([--disable-lto],
      [optimize each file by itself: slower program, faster build (for
       sanitizers and debug always so)])],
    [], [enable_lto=auto])
  AS_CASE([$enable_sanitizers,$enable_debug],
    [no,no], [], [AS_VAR_IF([enable_lto], [auto], [enable_lto=no])])
  CGL_LTO_FLAGS=
  AS_VAR_IF([enable_lto], [no], [], [
    AC_MSG_CHECKING([whether $CC optimizes the whole program])
    cgl_saved=$CFLAGS
    cgl_lto_flags="-flto=auto -ffat-lto-objects"
    CFLAGS="$CFLAGS -Werror $cgl_lto_flags"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
      [AC_MSG_RESULT([yes])
       CGL_LTO_FLAGS=$cgl_lto_flags
       enable_lto=yes],
      [AC_MSG_RESULT([no])
       AS_VAR_IF([enable_lto], [yes],
         [AC_MSG_ERROR([$CC cannot link with $cgl_lto_flags])])
       enable_lto=no])
    CFLAGS=$cgl_saved
  ])
  # Across files it takes values for unset that a failed status keeps from use.
  CGL_LTO_LDFLAGS= CGL_NO_LTO_LDFLAGS=
  AS_VAR_IF([enable_lto], [yes],
    [CGL_LTO_LDFLAGS="$CGL_LTO_FLAGS -Wno-maybe-uninitialized"
     CGL_NO_LTO_LDFLAGS=-fno-lto])
  AC_SUBST([CGL_LTO_FLAGS])
  AC_SUBST([CGL_LTO_LDFLAGS])
  AC_SUBST([CGL_NO_LTO_LDFLAGS])
])
