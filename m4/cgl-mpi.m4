# MPI, for ranks: a library of its own links it, so that the program runs without
# it.  Open MPI and MPICH have a module for pkg-config.
AC_DEFUN([CGL_MPI], [
  AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--with-mpi=MODULE|auto|no],
      [several ranks, by MPI as pkg-config knows it: ompi-c or mpich @<:@auto@:>@])],
    [], [with_mpi=auto])
  AS_CASE([$with_mpi],
    [no], [cgl_modules=],
    [yes|auto], [cgl_modules="ompi-c mpich"],
    [cgl_modules=$with_mpi])
  cgl_mpi=
  for cgl_module in $cgl_modules; do
    AS_IF([test -z "$cgl_mpi"],
      [PKG_CHECK_MODULES([MPI], [$cgl_module], [cgl_mpi=$cgl_module], [:])])
  done
  AS_CASE([$with_mpi,$cgl_mpi], [no,|auto,], [],
    [*,], [AC_MSG_ERROR([--with-mpi=$with_mpi: pkg-config knows no such MPI])])
  AM_CONDITIONAL([CGL_MPI], [test -n "$cgl_mpi"])
  AS_VAR_IF([cgl_mpi], [], [cgl_mpi="one, because there is no MPI"])
])
