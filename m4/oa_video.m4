dnl SPDX-License-Identifier: Apache-2.0
dnl OA_VIDEO: the module that decodes videos, unless --without-video. Sets VIDEO_CFLAGS, VIDEO_LIBS and the condition
dnl WITH_VIDEO.
AC_DEFUN([OA_VIDEO], [
AC_ARG_WITH([video],
	[AS_HELP_STRING([--without-video], [no videos (they need the libraries of FFmpeg: libavformat, libavcodec, libswscale)])],
	[], [with_video=yes])
AS_IF([test "x$enable_shared" = xno], [with_video=no])
AS_IF([test "x$with_video" != xno],
      [PKG_CHECK_MODULES([VIDEO], [libavformat >= 59 libavcodec >= 59 libswscale >= 6 libavutil >= 57], [],
	     [AC_MSG_ERROR([FFmpeg's libraries, 5.0 or later (Debian: packages "libavformat-dev", "libavcodec-dev", "libswscale-dev") were not found: install them, or say --without-video to do without videos])])])
AM_CONDITIONAL([WITH_VIDEO], [test "x$with_video" != xno])])
