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
dnl OA_PICTURES_FOUND(NAME, PREFIX, MODULES, LIBRARY, FILE): of a library that is found when the programs run: its headers
dnl alone, and in PICTURES_CPPFLAGS PREFIX_SONAME, the name of its file, which begins with FILE, for these headers.
AC_DEFUN([OA_PICTURES_FOUND], [
OA_PICTURES([$1], [$2], [$3], [$4])
AS_IF([test "x$with_$1" != xno],
      [AC_MSG_CHECKING([for the name of $4 when programs run])
       oa_saved_LIBS=$LIBS oa_saved_LDFLAGS=$LDFLAGS
       LIBS="$$2_LIBS $LIBS" LDFLAGS="$LDFLAGS -Wl,--no-as-needed"
       AC_LINK_IFELSE([AC_LANG_PROGRAM()],
	     [$2_SONAME=$(${READELF-readelf} -d conftest$EXEEXT | grep NEEDED | grep -o '$5@<:@.0-9@:>@*' | head -n 1)])
       LIBS=$oa_saved_LIBS LDFLAGS=$oa_saved_LDFLAGS
       AC_MSG_RESULT([$$2_SONAME])
       AS_IF([test -z "$$2_SONAME"], [AC_MSG_ERROR([what is linked with $4 does not say its name: give --without-$1])])
       PICTURES_CPPFLAGS="$PICTURES_CPPFLAGS -D$2_SONAME=\\\"$$2_SONAME\\\""])])
