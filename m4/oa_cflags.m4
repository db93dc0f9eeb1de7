dnl SPDX-License-Identifier: Apache-2.0
dnl
dnl OA_ADD_CFLAGS(WORDS): adds to OA_CFLAGS those words that this compiler takes without a murmur.
AC_DEFUN([OA_ADD_CFLAGS], [
	AC_LANG_ASSERT([C])
	for oa_word in m4_normalize([$1]); do
		AC_MSG_CHECKING([whether $CC takes $oa_word])
		oa_saved_CFLAGS=$CFLAGS
		CFLAGS="$CFLAGS -Werror $oa_word"
		AC_COMPILE_IFELSE([AC_LANG_SOURCE([[extern int here; int here;]])],
			[AC_MSG_RESULT([yes])
			 OA_CFLAGS="$OA_CFLAGS $oa_word"],
			[AC_MSG_RESULT([no])])
		CFLAGS=$oa_saved_CFLAGS
	done
])
