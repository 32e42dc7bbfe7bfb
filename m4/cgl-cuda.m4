# The driver's types are declared in the tree and libcuda is opened when the
# program runs, so CUDA support needs no toolkit.  cuda.h, where it is found,
# serves one check program that holds our declarations against it.

# CGL_CUDA_TRY(FOLDER): takes FOLDER when it holds a cuda.h.
AC_DEFUN([CGL_CUDA_TRY], [
  AS_IF([test -z "$cgl_cuda_include"], [
    for cgl_sub in include targets/x86_64-linux/include targets/sbsa-linux/include .; do
      AS_IF([test -r "$1/$cgl_sub/cuda.h"],
        [cgl_cuda_include=$1/$cgl_sub
         break])
    done
  ])
])

AC_DEFUN([CGL_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR|auto|no],
      [drive NVIDIA GPUs; DIR is a toolkit whose cuda.h the tests use @<:@auto@:>@])],
    [], [with_cuda=auto])
  cgl_cuda_include=
  AS_CASE([$with_cuda],
    [no], [],
    [yes|auto], [
      AS_IF([test -n "$CUDA_HOME"], [CGL_CUDA_TRY([$CUDA_HOME])])
      AS_IF([test -n "$CUDA_PATH"], [CGL_CUDA_TRY([$CUDA_PATH])])
      cgl_nvcc=`command -v nvcc 2>/dev/null`
      AS_IF([test -n "$cgl_nvcc"], [
        cgl_nvcc=`readlink -f "$cgl_nvcc"`
        cgl_nvcc=`AS_DIRNAME(["$cgl_nvcc"])`
        CGL_CUDA_TRY([$cgl_nvcc/..])])
      CGL_CUDA_TRY([/usr/local/cuda])
      CGL_CUDA_TRY([/usr])
      AS_IF([test "$with_cuda" = yes && test -z "$cgl_cuda_include"],
        [AC_MSG_ERROR([--with-cuda=yes: no cuda.h was found; name the toolkit with --with-cuda=DIR])])],
    [CGL_CUDA_TRY([$with_cuda])
     AS_IF([test -z "$cgl_cuda_include"],
       [AC_MSG_ERROR([--with-cuda=$with_cuda: no cuda.h under $with_cuda or its include folder])])])
  AS_VAR_IF([with_cuda], [no],
    [cgl_devices="host only (--with-cuda=no)"
     CGL_CUDA_CPPFLAGS=-DCGL_NO_CUDA=1],
    [CGL_CUDA_CPPFLAGS=
     AS_IF([test -n "$cgl_cuda_include"],
       [cgl_devices="host and cuda (libcuda opened at run time; types checked against $cgl_cuda_include/cuda.h)"],
       [cgl_devices="host and cuda (libcuda opened at run time; no cuda.h here to check types against)"])])
  AC_SUBST([CGL_CUDA_CPPFLAGS])
  AC_SUBST([CUDA_H_CPPFLAGS], ["${cgl_cuda_include:+-isystem $cgl_cuda_include}"])
  # Ranges for profilers need headers alone, where cuda.h is or in the
  # compiler's own folders.
  AS_IF([test -n "$cgl_cuda_include" && test -r "$cgl_cuda_include/nvtx3/nvToolsExt.h"],
    [cgl_nvtx=yes
     NVTX_CPPFLAGS="-DCGL_NVTX=1 -isystem $cgl_cuda_include"],
    [cgl_nvtx=no
     NVTX_CPPFLAGS=
     AC_CHECK_HEADER([nvtx3/nvToolsExt.h],
       [cgl_nvtx=yes
        NVTX_CPPFLAGS=-DCGL_NVTX=1])])
  AC_SUBST([NVTX_CPPFLAGS])
])
