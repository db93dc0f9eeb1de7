/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/s3/s3_time.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

/* So many digits at *text, which moves past them; -1: there are other characters. */
static int digits(const char **text, int n)
{
	int value = 0;

	for (; n > 0; n--, (*text)++) {
		if (**text < '0' || **text > '9')
			return -1;
		value = 10 * value + (**text - '0');
	}
	return value;
}

/* The number of n digits between `least` and `most`, and the character behind it, if there is to be one. */
static bool part(const char **text, int n, int least, int most, char end, int *ret)
{
	*ret = digits(text, n);
	if (*ret < least || *ret > most)
		return false;
	if (end && *(*text)++ != end)
		return false;
	return true;
}

/* "Z", "+01:00" or "+0100" to the end: seconds east. */
static bool zone(const char *text, int64_t *ret)
{
	const char sign = *text++;
	int hours, minutes;

	*ret = 0;
	if (sign == 'Z')
		return *text == '\0';
	if ((sign != '+' && sign != '-') || !part(&text, 2, 0, 23, '\0', &hours))
		return false;
	text += *text == ':';
	if (!part(&text, 2, 0, 59, '\0', &minutes) || *text)
		return false;
	*ret = (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
	return true;
}

int64_t s3_time_parse(const char *text)
{
	struct tm tm = {.tm_isdst = 0};
	int64_t east;

	if (!part(&text, 4, 1900, 9999, '-', &tm.tm_year) ||
	    !part(&text, 2, 1, 12, '-', &tm.tm_mon) || !part(&text, 2, 1, 31, 'T', &tm.tm_mday) ||
	    !part(&text, 2, 0, 23, ':', &tm.tm_hour) || !part(&text, 2, 0, 59, ':', &tm.tm_min) ||
	    !part(&text, 2, 0, 60, '\0', &tm.tm_sec))
		return INT64_MIN;
	if (*text == '.')
		for (text++; isdigit((unsigned char)*text); text++)
			continue;
	if (!zone(text, &east))
		return INT64_MIN;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return (int64_t)timegm(&tm) - east;
}

void s3_time_stamp(int64_t seconds, char ret[S3_TIME_STAMP])
{
	const time_t time = (time_t)seconds;
	struct tm tm = {.tm_isdst = 0};

	gmtime_r(&time, &tm);
	if (strftime(ret, S3_TIME_STAMP, "%Y%m%dT%H%M%SZ", &tm) == 0)
		ret[0] = '\0';
}
