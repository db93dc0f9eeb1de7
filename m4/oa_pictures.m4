dnl SPDX-License-Identifier: Apache-2.0
dnl OA_PICTURES(NAME, PREFIX, MODULES, LIBRARY): pictures of a format that needs a library, unless --without-NAME.
dnl Sets PREFIX_CFLAGS and PREFIX_LIBS, the condition WITH_PREFIX, and HAS_PREFIX in PICTURES_CPPFLAGS.
AC_DEFUN([OA_PICTURES], [
AC_ARG_WITH([$1],
	[AS_HELP_STRING([--without-$1], [no $2 pictures (they need $4)])], [], [with_$1=yes])
AS_IF([test "x$with_$1" != xno],
      [PKG_CHECK_MODULES([$2], [$3])
       PICTURES_CPPFLAGS="$PICTURES_CPPFLAGS -DHAS_$2=1"],
      [PICTURES_CPPFLAGS="$PICTURES_CPPFLAGS -DHAS_$2=0"])
AM_CONDITIONAL([WITH_$2], [test "x$with_$1" != xno])
AC_SUBST([PICTURES_CPPFLAGS])])
