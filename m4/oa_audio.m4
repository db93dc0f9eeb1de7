dnl SPDX-License-Identifier: Apache-2.0
dnl OA_AUDIO: sounds, unless --without-audio. Sets SNDFILE_CFLAGS, MPG123_CFLAGS, SOXR_CFLAGS and their LIBS, the condition
dnl WITH_AUDIO, and HAS_AUDIO in PICTURES_CPPFLAGS.
AC_DEFUN([OA_AUDIO], [
AC_ARG_WITH([audio],
	[AS_HELP_STRING([--without-audio], [no sounds (they need libsndfile, libmpg123 and libsoxr)])], [], [with_audio=yes])
AS_IF([test "x$with_audio" != xno],
      [PKG_CHECK_MODULES([SNDFILE], [sndfile >= 1.0.31])
       PKG_CHECK_MODULES([MPG123], [libmpg123 >= 1.26.0])
       PKG_CHECK_MODULES([SOXR], [soxr >= 0.1.3])
       PICTURES_CPPFLAGS="$PICTURES_CPPFLAGS -DHAS_AUDIO=1"],
      [PICTURES_CPPFLAGS="$PICTURES_CPPFLAGS -DHAS_AUDIO=0"])
AM_CONDITIONAL([WITH_AUDIO], [test "x$with_audio" != xno])
AC_SUBST([PICTURES_CPPFLAGS])])
