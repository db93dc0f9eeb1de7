/* SPDX-License-Identifier: Apache-2.0 */
/* Specs: what is refused and how it is said, the canonical text and its hash, the fields. */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline/pipeline.h"
#include "pipeline/spec/op.h"
#include "pipeline/spec/spec_value.h"

#define D "{\"op\":\"decode\"}"
#define SIZE "{\"op\":\"decode\",\"only_size\":true}"
#define CROP "{\"op\":\"center_crop\",\"size\":8}"
#define NORM "{\"op\":\"normalize\",\"mean\":[0,0,0],\"std\":[1,1,1]}"

#define BOXED                                                                                      \
	"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,9,4]],\"kinds\":[3],\"names\":[" \
	"\"boxes\"]}"

static const struct {
	const char *text;
	const char *says[3]; /* each is part of the message */
} spec_bad[] = {
    {"", {"no JSON"}},
    {"[", {"no JSON"}},
    {"{\"ops\":[" D "],\"ops\":[]}", {"no JSON", "duplicate"}},
    {"7", {"no list of ops", "{\"ops\": ["}},
    {"{\"op\":[" D "]}", {"no list of ops"}},
    {"{\"ops\":[" D "],\"seed\":1}", {"no list of ops"}},
    {"[]", {"has 0 ops", "1 to 32"}},
    {"[7]", {"op 1 is no object"}},
    {"[" D ",{\"size\":3}]", {"op 2 is no object with a name"}},
    {"[" D ",{\"op\":\"flip\"}]", {"op 2", "no op \"flip\"", "hflip"}},
    {"[" D ",{\"op\":\"a\\u0007b\"}]", {"op 2", "\\x07"}},
    {"[" D ",{\"op\":\"resize\",\"sise\":8}]", {"op 2 (resize)", "\"sise\"", "interpolation"}},
    {"[{\"op\":\"decode\",\"size\":8}]", {"op 1 (decode)", "exif_transpose"}},
    {"[{\"op\":\"decode\",\"exif_transpose\":1}]", {"op 1 (decode)", "neither true nor false"}},
    {"[{\"op\":\"decode\",\"fast\":\"yes\"}]", {"op 1 (decode)", "fast is neither true nor false"}},
    {"[" SIZE "," CROP "]",
     {"op 2 (center_crop)", "the picture's size and no pixels", "only_size"}},
    {"[" SIZE ",{\"op\":\"layout\",\"order\":\"CHW\"}]", {"op 2 (layout)", "no pixels"}},
    {"[" SIZE ",{\"op\":\"cutmix\",\"num_classes\":2}]", {"op 1 (decode)", "mixup and cutmix"}},
    {"[" SIZE ",{\"op\":\"view\",\"names\":[\"other\"]}," CROP "]", {"op 1 (decode)", "views"}},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"only_size\":true,\"fields\":[[1]],\"kinds\":[5]}"
     "]",
     {"op 1 (decode)", "masks and further pictures neither"}},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"only_size\":true,\"fields\":[[1]],\"kinds\":[8]}"
     "]",
     {"op 1 (decode)", "masks and further pictures neither"}},
    {"[" D ",{\"op\":\"center_crop\"}]", {"op 2 (center_crop)", "size is missing", "pixels"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":8.5}]", {"op 2", "size is no size"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[1,2,3]}]", {"op 2", "size is no size"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[1,2,3,4]}]", {"op 2", "size is no size"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[]}]", {"op 2", "size is no size"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":null}]", {"op 2", "size is no size"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":0}]", {"op 2", "1 to 16384"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":-4}]", {"op 2", "1 to 16384"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[8,16385]}]", {"op 2", "1 to 16384"}},
    {"[" D ",{\"op\":\"random_resized_crop\",\"size\":8,\"scale\":0.5}]", {"scale is no pair"}},
    {"[" D ",{\"op\":\"random_resized_crop\",\"size\":8,\"scale\":[0,1]}]",
     {"scale is no range above 0", "[0.08, 1]"}},
    {"[" D ",{\"op\":\"random_resized_crop\",\"size\":8,\"ratio\":[2,1]}]", {"ratio is no range"}},
    {"[" D ",{\"op\":\"random_resized_crop\",\"size\":8,\"ratio\":[1,1e300]}]",
     {"ratio", "proportion"}},
    {"[" D ",{\"op\":\"random_resized_crop\",\"size\":8,\"interpolation\":\"area\"}]",
     {"op 2", "interpolation is none", "bilinear"}},
    {"[" D ",{\"op\":\"random_resized_crop\",\"size\":8,\"interpolation\":2}]",
     {"interpolation is no string"}},
    {"[" D "," CROP ",{\"op\":\"hflip\",\"p\":1.5}]", {"op 3 (hflip)", "p is not from 0 to 1"}},
    {"[" D "," CROP ",{\"op\":\"hflip\",\"p\":[0.5]}]", {"op 3 (hflip)", "p is no number"}},
    {"[" D "," CROP ",{\"op\":\"hflip\",\"p\":true}]", {"op 3 (hflip)", "p is no number"}},
    {"[" D "," CROP ",{\"op\":\"normalize\",\"mean\":[0,0,0]}]", {"std is missing", "three"}},
    {"[" D "," CROP ",{\"op\":\"normalize\",\"mean\":[0,0],\"std\":[1,1,1]}]",
     {"3 channels, and 2 numbers", "one for each"}},
    {"[" D "," CROP ",{\"op\":\"normalize\",\"mean\":[0,0,0],\"std\":[1,0,1]}]",
     {"std has a number that is not above 0"}},
    {"[" D "," CROP ",{\"op\":\"normalize\",\"mean\":[0,1e9,0],\"std\":[1,1,1]}]",
     {"mean has a number beyond"}},
    {"[" D "," CROP ",{\"op\":\"cast\",\"dtype\":\"float32\"}]", {"dtype is none", "f16"}},
    {"[" D "," CROP ",{\"op\":\"layout\",\"order\":\"NCHW\"}]", {"order is none", "CHW"}},
    {"[" CROP "]", {"op 1 (center_crop)", "first op must be decode"}},
    {"[" D "," D "]", {"op 2 (decode)", "decoded already"}},
    {"[" D "]", {"op 1 (decode)", "sample to sample", "center_crop"}},
    {"[" D ",{\"op\":\"resize\",\"size\":8}]", {"op 2 (resize)", "sample to sample"}},
    {"[" D ",{\"op\":\"resize\",\"size\":8},{\"op\":\"cast\"}]", {"op 2 (resize)", "center_crop"}},
    {"[" D "," CROP "," NORM "," CROP "]", {"op 4 (center_crop)", "before op 3 (normalize)"}},
    {"[" D "," CROP ",{\"op\":\"layout\"},{\"op\":\"hflip\"}]", {"op 4 (hflip)", "before op 3"}},
    {"[" D "," CROP "," NORM "," NORM "]", {"op 4 (normalize)", "twice"}},
    {"[" D "," CROP ",{\"op\":\"cast\"},{\"op\":\"cast\"}]", {"op 4 (cast)", "twice"}},
    {"[" D "," CROP ",{\"op\":\"cast\"}," NORM "]", {"op 4 (normalize)", "before cast"}},
    {"[" D "," CROP "," NORM ",{\"op\":\"cast\",\"dtype\":\"u8\"}]", {"op 4 (cast)", "fit u8"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[1,16384]},{\"op\":\"resize\",\"size\":16384}]",
     {"op 3 (resize)", "too large"}},
    {"[" D ",{\"op\":\"rotate\",\"degrees\":\"x\"}]",
     {"op 2 (rotate)", "degrees is neither a number nor a pair", "[-x, x]"}},
    {"[" D ",{\"op\":\"rotate\"}]", {"degrees is missing"}},
    {"[" D ",{\"op\":\"rotate\",\"degrees\":-3}]", {"degrees is a number below 0"}},
    {"[" D ",{\"op\":\"rotate\",\"degrees\":[3,1]}]", {"degrees begins with the larger"}},
    {"[" D ",{\"op\":\"rotate\",\"degrees\":3,\"interpolation\":\"lanczos\"}]",
     {"interpolation is none of its words", "bicubic"}},
    {"[" D ",{\"op\":\"rotate\",\"degrees\":3,\"expand\":1}]",
     {"expand is neither true nor false"}},
    {"[" D ",{\"op\":\"rotate\",\"degrees\":3,\"center\":[1]}]", {"center is no pair", "null"}},
    {"[" D ",{\"op\":\"rotate\",\"degrees\":3,\"fill\":[1,2]}]", {"fill is neither one nor three"}},
    {"[" D ",{\"op\":\"rotate\",\"degrees\":3,\"fill\":0.5}]",
     {"fill is neither one nor three whole"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":1e9}]", {"degrees is not from -36000 to 36000"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"translate\":[0.1,1.1]}]",
     {"translate is not from 0 to 1"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"translate\":0.1}]", {"translate is no pair"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"scale\":[0,1]}]",
     {"scale is not from 0.001 to 1000"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"scale\":2}]", {"scale is no pair"}},
    {"[" D ",{\"op\":\"rotate\",\"degrees\":3,\"padding_mode\":\"wrap\"}]",
     {"padding_mode is none", "reflect"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"scale_y\":[0,1]}]", {"scale_y is not from 0.001"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"shear\":90}]", {"shear is not from -89 to 89"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"shear\":[1,2,3]}]",
     {"shear is neither one, two nor four"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"interpolation\":null}]",
     {"interpolation is no string"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"fill\":256}]", {"fill is not from 0 to 255"}},
    {"[" D ",{\"op\":\"affine\",\"degrees\":3,\"center\":7}]", {"center is no pair"}},
    {"[" D ",{\"op\":\"random_perspective\",\"distortion_scale\":1.5}]",
     {"op 2 (random_perspective)", "distortion_scale is not from 0 to 1"}},
    {"[" D ",{\"op\":\"random_perspective\",\"p\":-1}]", {"p is not from 0 to 1"}},
    {"[" D ",{\"op\":\"random_perspective\",\"interpolation\":\"box\"}]",
     {"interpolation is none of its words", "bicubic"}},
    {"[" D ",{\"op\":\"random_perspective\",\"fill\":256}]", {"fill is not from 0 to 255"}},
    {"[" D ",{\"op\":\"random_perspective\",\"degrees\":3}]", {"no parameter \"degrees\""}},
    {"[" D ",{\"op\":\"scale_jitter\",\"target_size\":8}]",
     {"op 2 (scale_jitter)", "sample to sample"}},
    {"[" D ",{\"op\":\"scale_jitter\",\"target_size\":8,\"scale_range\":[0,1]}," CROP "]",
     {"scale_range is not from 0.001 to 1000"}},
    {"[" D ",{\"op\":\"random_shortest_size\",\"min_size\":[]}," CROP "]",
     {"min_size is neither a whole number nor a list of up to 16", "the shorter side"}},
    {"[" D ",{\"op\":\"random_shortest_size\",\"min_size\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"
     "17]}," CROP "]",
     {"min_size is neither"}},
    {"[" D ",{\"op\":\"random_shortest_size\",\"min_size\":[8,0]}," CROP "]",
     {"min_size is not from 1 to 16384"}},
    {"[" D ",{\"op\":\"random_resize\",\"min_size\":8,\"max_size\":8}," CROP "]",
     {"op 2 (random_resize)", "\"max_size\" is not above \"min_size\""}},
    {"[" D "," CROP ",{\"op\":\"random_zoom_out\"}]",
     {"op 3 (random_zoom_out)", "sample to sample", "fixed_size_crop"}},
    {"[" D "," CROP ",{\"op\":\"random_zoom_out\",\"side_range\":[0.5,1]}]",
     {"side_range is not from 1 to 1000"}},
    {"[" D "," CROP ",{\"op\":\"random_iou_crop\"}]",
     {"op 3 (random_iou_crop)", "sample to sample"}},
    {"[" D ",{\"op\":\"random_iou_crop\"}," CROP "]",
     {"op 2 (random_iou_crop)", "by the boxes on the first picture", "kind 3"}},
    {BOXED "," CROP ",{\"op\":\"view\",\"names\":[\"other\"]},{\"op\":\"random_iou_crop\"}," CROP
	   "]",
     {"view \"other\"", "by the boxes on the first picture"}},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,9,4],[1]],\"kinds\":[3,8],\"names\":"
     "["
     "\"boxes\",\"other\"]}," CROP ",{\"op\":\"view\",\"names\":[\"other\"]},"
     "{\"op\":\"random_iou_crop\"}," CROP "]",
     {"picture \"other\"", "by the boxes on the first picture"}},
    {"[" D ",{\"op\":\"random_iou_crop\",\"min_scale\":0.5,\"max_scale\":0.4}," CROP "]",
     {"\"min_scale\" is above"}},
    {"[" D ",{\"op\":\"random_iou_crop\",\"min_aspect_ratio\":3}," CROP "]",
     {"\"min_aspect_ratio\" is above"}},
    {"[" D ",{\"op\":\"random_iou_crop\",\"sampler_options\":\"0.5\"}," CROP "]",
     {"sampler_options is neither a number nor a list of up to 16"}},
    {"[" D ",{\"op\":\"pad\"}]", {"padding is missing"}},
    {"[" D ",{\"op\":\"pad\",\"padding\":-1}]", {"padding is not from 0 to 16384"}},
    {"[" D ",{\"op\":\"pad\",\"padding\":[1,2,3]}]", {"padding is neither one, two nor four"}},
    {"[" D ",{\"op\":\"pad\",\"padding\":1,\"padding_mode\":\"wrap\"}]",
     {"padding_mode is none", "symmetric"}},
    {"[" D ",{\"op\":\"pad\",\"padding\":1,\"fill\":\"red\"}]", {"fill is neither"}},
    {"[" D ",{\"op\":\"random_crop\",\"size\":0}]", {"size is not from 1 to 16384"}},
    {"[" D ",{\"op\":\"random_crop\",\"size\":8,\"padding\":1.5}]", {"padding is neither"}},
    {"[" D ",{\"op\":\"random_crop\",\"size\":8,\"pad_if_needed\":\"yes\"}]",
     {"pad_if_needed is neither true nor false"}},
    {"[" D ",{\"op\":\"random_crop\",\"size\":8,\"fill\":-1}]", {"fill is not from 0"}},
    {"[" D ",{\"op\":\"random_crop\",\"size\":8,\"padding_mode\":3}]",
     {"padding_mode is no string"}},
    {"[" D ",{\"op\":\"five_crop\",\"size\":[1,2,3]}]", {"size is no size"}},
    {"[" D ",{\"op\":\"gaussian_blur\",\"kernel_size\":4}]", {"kernel_size is not odd"}},
    {"[" D ",{\"op\":\"gaussian_blur\",\"kernel_size\":[3,257]}]",
     {"kernel_size is not from 1 to 255"}},
    {"[" D ",{\"op\":\"gaussian_blur\",\"kernel_size\":3,\"sigma\":0}]",
     {"sigma is not from 0.001"}},
    {"[" D ",{\"op\":\"gaussian_blur\",\"kernel_size\":3,\"sigma\":[2,1]}]",
     {"sigma begins with the larger"}},
    {"[" D ",{\"op\":\"jpeg\"}]", {"quality is missing"}},
    {"[" D ",{\"op\":\"coarse_dropout\",\"holes\":257}]", {"holes is not from 1 to 256"}},
    {"[" D ",{\"op\":\"coarse_dropout\",\"holes\":[1,2.5]}]", {"op 2 (coarse_dropout)", "whole"}},
    {"[" D ",{\"op\":\"coarse_dropout\",\"height\":[1,8]}]", {"one is a share", "both from 1 on"}},
    {"[" D ",{\"op\":\"coarse_dropout\",\"value\":0.5}]", {"from 0 to 255 and whole"}},
    {"[" D ",{\"op\":\"coarse_dropout\",\"value\":\"inpaint_ns\"}]",
     {"value is", "random_uniform"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"coarse_dropout\",\"value\":\"random\"}]",
     {"op 3 (coarse_dropout): random colours are not there"}},
    {"[" D ",{\"op\":\"layout\"},{\"op\":\"coarse_dropout\"}]",
     {"op 3 (coarse_dropout) works on 8-bit"}},
    {"[" D ",{\"op\":\"jpeg\",\"quality\":0}]", {"quality is not from 1 to 100"}},
    {"[" D ",{\"op\":\"jpeg\",\"quality\":[3,50.5]}]", {"op 2 (jpeg)", "give whole ones"}},
    {"[" D ",{\"op\":\"elastic_transform\",\"sigma\":[5,0]}]",
     {"op 2 (elastic_transform)", "one sigma is 0"}},
    {"[" D ",{\"op\":\"elastic_transform\",\"sigma\":[32,1]}]", {"sigma is not from 0 to 31.75"}},
    {"[" D ",{\"op\":\"elastic_transform\",\"interpolation\":\"bicubic\"}]",
     {"interpolation is none of its words", "nearest or bilinear"}},
    {"[" D "," CROP ",{\"op\":\"gaussian_noise\"}]",
     {"op 3 (gaussian_noise)", "it is of floats", "behind it"}},
    {"[" D "," CROP ",{\"op\":\"gaussian_noise\"},{\"op\":\"cast\",\"dtype\":\"u8\"}]",
     {"op 3 (gaussian_noise)", "it is of floats"}},
    {"[" D "," CROP ",{\"op\":\"layout\"},{\"op\":\"gaussian_noise\"}]",
     {"op 4 (gaussian_noise)", "it is of floats"}},
    {"[" D "," CROP ",{\"op\":\"gaussian_noise\"},{\"op\":\"hflip\"},{\"op\":\"cast\"}]",
     {"op 4 (hflip)", "before op 3 (gaussian_noise)"}},
    {"[" D "," CROP ",{\"op\":\"gaussian_noise\"},{\"op\":\"random_erasing\"}," NORM "]",
     {"op 5 (normalize)", "op 4 (random_erasing)", "put it first"}},
    {"[" D "," CROP ",{\"op\":\"gaussian_noise\"}," NORM ",{\"op\":\"gaussian_noise\"}]",
     {"op 5 (gaussian_noise)", "there twice"}},
    {"[" D "," CROP "," NORM ",{\"op\":\"gaussian_noise\"},{\"op\":\"gaussian_noise\"}]",
     {"op 5 (gaussian_noise)", "there twice"}},
    {"[" D "," CROP ",{\"op\":\"random_apply\"},{\"op\":\"gaussian_noise\"},{\"op\":\"cast\"}]",
     {"op 4 (gaussian_noise)", "give it \"p\""}},
    {"[" D ",{\"op\":\"five_crop\",\"size\":8},{\"op\":\"cast\"},{\"op\":\"gaussian_noise\"}]",
     {"op 4 (gaussian_noise)", "the same noise"}},
    {"[{\"op\":\"video\",\"frames\":2}," CROP ",{\"op\":\"gaussian_noise\"},{\"op\":\"cast\"}]",
     {"op 3 (gaussian_noise)", "the same noise"}},
    {"[" D ",{\"op\":\"random_erasing\",\"p\":2}]", {"p is not from 0 to 1"}},
    {"[" D ",{\"op\":\"random_erasing\",\"scale\":[0.5,1.5]}]", {"scale is not from 0 to 1"}},
    {"[" D ",{\"op\":\"random_erasing\",\"ratio\":[0,1]}]", {"ratio is no range above 0"}},
    {"[" D ",{\"op\":\"random_erasing\",\"value\":\"noise\"}]", {"value is none of its words"}},
    {"[" D ",{\"op\":\"random_erasing\",\"value\":[1,2]}]", {"value is neither one nor three"}},
    {"[" D ",{\"op\":\"random_erasing\",\"value\":0.5}]",
     {"op 2 (random_erasing)", "8-bit", "behind normalize"}},
    {"[" D ",{\"op\":\"random_erasing\",\"value\":[0,256,0]}]", {"8-bit"}},
    {"[" D ",{\"op\":\"resize\",\"size\":8,\"max_size\":8}]", {"not above", "larger"}},
    {"[" D ",{\"op\":\"resize\",\"size\":[8,9],\"max_size\":10}]", {"no meaning beside"}},
    {"[" D ",{\"op\":\"resize\",\"size\":null}]", {"neither", "max_size"}},
    {"[" D ",{\"op\":\"resize\",\"size\":8,\"antialias\":false}]", {"antialias"}},
    {"[" D ",{\"op\":\"resize\",\"size\":8,\"max_size\":0}]", {"max_size is not from 1 to 16384"}},
    {"[" D ",{\"op\":\"vflip\",\"p\":-0.1}]", {"p is not from 0 to 1"}},
    {"[" D "," CROP ",{\"op\":\"five_crop\",\"size\":4},{\"op\":\"hflip\"}]",
     {"op 4 (hflip)", "several pictures"}},
    {"[" D "," CROP ",{\"op\":\"rotate\",\"degrees\":3,\"expand\":true}]",
     {"op 3 (rotate)", "sample to sample"}},
    {"[" D ",{\"op\":\"random_crop\",\"size\":16384},{\"op\":\"pad\",\"padding\":1}]",
     {"op 3 (pad)", "too large"}},
    {"[" D "," CROP ",{\"op\":\"layout\"},{\"op\":\"random_erasing\"}," NORM "]",
     {"op 5 (normalize)", "op 4 (random_erasing)", "put it first"}},
    {"[" D "," CROP ",{\"op\":\"layout\"},{\"op\":\"random_erasing\"},{\"op\":\"cast\"}]",
     {"op 5 (cast)", "op 4 (random_erasing)"}},
    {"[" D "," CROP ",{\"op\":\"layout\"},{\"op\":\"random_erasing\",\"value\":300}]",
     {"op 4 (random_erasing)", "8-bit"}},
    {"[" D "," CROP "," NORM ",{\"op\":\"rotate\",\"degrees\":3}]",
     {"op 4 (rotate)", "before op 3 (normalize)"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"rotate\",\"degrees\":3,\"fill\":[1,2,3]}]",
     {"op 3 (rotate)", "one channel"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"affine\",\"degrees\":3,\"fill\":[1,2,3]}]",
     {"op 3 (affine)", "one channel"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"random_perspective\",\"fill\":[1,2,3]}]",
     {"op 3 (random_perspective)", "one channel"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"pad\",\"padding\":1,\"fill\":[0,0,1]}]",
     {"op 3 (pad)", "one channel"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"random_crop\",\"size\":4,\"fill\":[0,1,1]}]",
     {"op 3 (random_crop)", "one channel"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"random_erasing\",\"value\":[0,1,1]}]",
     {"op 3 (random_erasing)", "one channel"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"random_erasing\",\"value\":\"random\"}]",
     {"op 3 (random_erasing)", "one channel"}},
};

START_TEST(bad)
{
	const char *text = spec_bad[_i].text;
	struct pipeline *pipeline = NULL;
	struct diag diag = {""};

	ck_assert_int_eq(pipeline_compile(text, strlen(text), &pipeline, &diag), PIPELINE_E_BAD);
	ck_assert_ptr_null(pipeline);
	ck_assert_msg(strncmp(diag.text, "pipeline: ", 10) == 0, "%s", diag.text);
	for (unsigned i = 0; i < 3 && spec_bad[_i].says[i]; i++)
		ck_assert_msg(strstr(diag.text, spec_bad[_i].says[i]) != NULL,
			      "%s: no \"%s\" in: %s", text, spec_bad[_i].says[i], diag.text);
}
END_TEST

static struct pipeline *spec_compiled(const char *text)
{
	struct pipeline *pipeline;
	struct diag diag = {""};
	int r = pipeline_compile(text, strlen(text), &pipeline, &diag);

	ck_assert_msg(r == 0, "%s: %d: %s", text, r, diag.text);
	return pipeline;
}

START_TEST(too_long)
{
	struct pipeline *pipeline = NULL;
	struct diag diag = {""};
	char *text = malloc(PIPELINE_MAX_TEXT + 1);

	ck_assert_ptr_nonnull(text);
	memset(text, ' ', PIPELINE_MAX_TEXT + 1);
	memcpy(text, "[" D "," CROP "]", strlen("[" D "," CROP "]"));
	ck_assert_int_eq(pipeline_compile(text, PIPELINE_MAX_TEXT, &pipeline, &diag), 0);
	pipeline_free(pipeline);
	ck_assert_int_eq(pipeline_compile(text, PIPELINE_MAX_TEXT + 1, &pipeline, &diag),
			 PIPELINE_E_BAD);
	free(text);
}
END_TEST

START_TEST(too_many)
{
	char text[1024] = "[" D;
	struct pipeline *pipeline = NULL;
	struct diag diag = {""};

	for (unsigned i = 1; i < PIPELINE_MAX_OPS; i++)
		strcat(text, ",{\"op\":\"hflip\"}");
	strcat(text, "]");
	ck_assert_int_eq(pipeline_compile(text, strlen(text), &pipeline, &diag), PIPELINE_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "sample to sample"));
	strcpy(text + strlen(text) - 1, ",{\"op\":\"hflip\"}]");
	ck_assert_int_eq(pipeline_compile(text, strlen(text), &pipeline, &diag), PIPELINE_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "has 33 ops"));
}
END_TEST

/* A text and its canonical one: defaults there, keys sorted, one form of each number. */
static const struct {
	const char *text, *canonical;
} spec_good[] = {
    {"[" D ",{\"size\":[224],\"op\":\"random_resized_crop\"}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"interpolation\":\"bilinear\",\"op\":\"random_resized_crop\","
     "\"ratio\":[0.75,1.3333333333333333],\"scale\":[0.08,1],\"size\":[224,224]}]}"},
    {"{\"ops\":[" D ",{\"op\":\"random_resized_crop\",\"size\":[10,200],\"scale\":[8e-2,1.0],"
     "\"ratio\":[1,1.50],\"interpolation\":\"bicubic\"}]}",
     "{\"ops\":[{\"op\":\"decode\"},{\"interpolation\":\"bicubic\",\"op\":\"random_resized_crop\","
     "\"ratio\":[1,1.5],\"scale\":[0.08,1],\"size\":[10,200]}]}"},
    {" [ " D ", {\"op\":\"resize\",\"size\":[256]} ," CROP ",{\"op\":\"hflip\"}] ",
     "{\"ops\":[{\"op\":\"decode\"},{\"interpolation\":\"bilinear\",\"op\":\"resize\",\"size\":256}"
     ","
     "{\"op\":\"center_crop\",\"size\":[8,8]},{\"op\":\"hflip\",\"p\":0.5}]}"},
    {"[" D "," CROP ",{\"op\":\"normalize\",\"std\":[1e-6,0.1,100],\"mean\":[-0.0,-1.25,1e5]},"
     "{\"op\":\"cast\",\"dtype\":\"f16\"},{\"op\":\"layout\"}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},{\"mean\":[0,-1.25,"
     "100000],\"op\":\"normalize\",\"std\":[1e-06,0.1,100]},{\"dtype\":\"f16\",\"op\":\"cast\"},"
     "{\"op\":\"layout\",\"order\":\"CHW\"}]}"},
    {"[" D "," CROP ",{\"op\":\"cast\"},{\"op\":\"layout\",\"order\":\"HWC\"}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},{\"dtype\":\"f32\","
     "\"op\":\"cast\"},{\"op\":\"layout\",\"order\":\"HWC\"}]}"},
    {"[" D "," CROP ",{\"op\":\"rotate\",\"degrees\":30,\"fill\":[9]}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},{\"center\":null,"
     "\"degrees\":[-30,30],\"expand\":false,\"fill\":[9,9,9],\"interpolation\":\"nearest\","
     "\"op\":\"rotate\"}]}"},
    {"[" D "," CROP ",{\"op\":\"affine\",\"degrees\":[0,0],\"shear\":10,\"translate\":[0.5,0.25]}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},{\"center\":null,"
     "\"degrees\":[0,0],\"fill\":[0,0,0],\"interpolation\":\"nearest\",\"op\":\"affine\","
     "\"scale\":null,\"shear\":[-10,10,0,0],\"translate\":[0.5,0.25]}]}"},
    {"[" D "," CROP ",{\"op\":\"random_perspective\",\"p\":1}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},{"
     "\"distortion_scale\":0.5,\"fill\":[0,0,0],\"interpolation\":\"bilinear\","
     "\"op\":\"random_perspective\",\"p\":1}]}"},
    {"[" D ",{\"op\":\"random_shortest_size\",\"min_size\":[480]},{\"op\":\"random_zoom_out\","
     "\"p\":1},{\"op\":\"fixed_size_crop\",\"size\":8}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"interpolation\":\"bilinear\",\"max_size\":null,"
     "\"min_size\":480,\"op\":\"random_shortest_size\"},{\"fill\":[0,0,0],"
     "\"op\":\"random_zoom_out\",\"p\":1,\"side_range\":[1,4]},{\"fill\":[0,0,0],\"op\":\"fixed_"
     "size_crop\","
     "\"padding_mode\":\"constant\",\"size\":[8,8]}]}"},
    {"[" D
     ",{\"op\":\"random_crop\",\"size\":32,\"padding\":4},{\"op\":\"pad\",\"padding\":[1,2]}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"fill\":[0,0,0],\"op\":\"random_crop\",\"pad_if_needed\":"
     "false,"
     "\"padding\":[4,4,4,4],\"padding_mode\":\"constant\",\"size\":[32,32]},{\"fill\":[0,0,0],"
     "\"op\":"
     "\"pad\",\"padding\":[1,2,1,2],\"padding_mode\":\"constant\"}]}"},
    {"[" D ",{\"op\":\"five_crop\",\"size\":8}," NORM
     ",{\"op\":\"random_erasing\",\"value\":\"random\"}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"five_crop\",\"size\":[8,8]},{\"mean\":[0,0,0],\"op\":"
     "\"normalize\",\"std\":[1,1,1]},{\"op\":\"random_erasing\",\"p\":0.5,\"ratio\":[0.3,3.3],"
     "\"scale\":[0.02,0.33],\"value\":\"random\"}]}"},
    {"[" D "," CROP ",{\"op\":\"gaussian_blur\",\"kernel_size\":[5],\"sigma\":1.5},"
     "{\"op\":\"random_erasing\"},{\"op\":\"vflip\"}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},{\"kernel_size\":[5,5],"
     "\"op\":\"gaussian_blur\",\"sigma\":[1.5,1.5]},{\"op\":\"random_erasing\",\"p\":0.5,\"ratio\":"
     "[0.3,3.3],\"scale\":[0.02,0.33],\"value\":[0,0,0]},{\"op\":\"vflip\",\"p\":0.5}]}"},
    {"[" D "," CROP
     ",{\"op\":\"jpeg\",\"quality\":9},{\"op\":\"gaussian_noise\",\"sigma\":0.5}," NORM "]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},{\"op\":\"jpeg\","
     "\"quality\":[9,9]},{\"clip\":true,\"mean\":0,\"op\":\"gaussian_noise\",\"p\":1,\"sigma\":"
     "[0.5,0.5]},{\"mean\":[0,0,0],\"op\":\"normalize\",\"std\":[1,1,1]}]}"},
    {"[" D "," CROP ",{\"op\":\"elastic_transform\",\"fill\":null}]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},{\"alpha\":[50,50],"
     "\"fill\":null,\"interpolation\":\"bilinear\",\"op\":\"elastic_transform\",\"sigma\":[5,5]}]"
     "}"},
    {"[" D ",{\"op\":\"resize\",\"size\":8,\"max_size\":null,\"antialias\":true}," CROP "]",
     "{\"ops\":[{\"op\":\"decode\"},{\"interpolation\":\"bilinear\",\"op\":\"resize\",\"size\":8},"
     "{\"op\":\"center_crop\",\"size\":[8,8]}]}"},
    {"[{\"op\":\"decode\",\"exif_transpose\":false}," CROP "]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]}]}"},
    {"[{\"op\":\"decode\",\"exif_transpose\":true}," CROP "]",
     "{\"ops\":[{\"exif_transpose\":true,\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]"
     "}]}"},
    {"[" SIZE ",{\"op\":\"one_hot\",\"num_classes\":2}]",
     "{\"ops\":[{\"only_size\":true,\"op\":\"decode\"},{\"num_classes\":2,\"op\":\"one_hot\"}]}"},
    {"[{\"op\":\"decode\",\"fast\":true}," CROP "]",
     "{\"ops\":[{\"fast\":true,\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]}]}"},
    {"[{\"fast\":false,\"op\":\"decode\"}," CROP "]",
     "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]}]}"},
    {"[" D ",{\"op\":\"resize\",\"size\":null,\"max_size\":9}," CROP "]",
     "{\"ops\":[{\"op\":\"decode\"},{\"interpolation\":\"bilinear\",\"max_size\":9,\"op\":"
     "\"resize\","
     "\"size\":null},{\"op\":\"center_crop\",\"size\":[8,8]}]}"},
    {"[{\"op\":\"bands\",\"bands\":[3,2]}," CROP
     ",{\"op\":\"normalize\",\"mean\":[0.1,-0.0],\"std\":[1e-6,0.12345678901]}]",
     "{\"ops\":[{\"bands\":[3,2],\"channels\":null,\"clamp\":null,\"op\":\"bands\",\"scale\":1},{"
     "\"op\":\"center_crop\",\"size\":[8,8]},{\"mean\":[0.1,0],\"op\":\"normalize\",\"std\":[1e-06,"
     "0.12345679]}]}"},
    {"[{\"op\":\"bands\",\"channels\":1,\"scale\":0.0001,\"clamp\":[0,1]}," CROP "]",
     "{\"ops\":[{\"bands\":null,\"channels\":1,\"clamp\":[0,1],\"op\":\"bands\",\"scale\":0.0001},{"
     "\"op\":\"center_crop\",\"size\":[8,8]}]}"},
};

START_TEST(canonical)
{
	struct pipeline *first = spec_compiled(spec_good[_i].text);
	struct pipeline *again = spec_compiled(pipeline_canonical(first));
	struct hash_id a, b;

	ck_assert_str_eq(pipeline_canonical(first), spec_good[_i].canonical);
	ck_assert_str_eq(pipeline_canonical(again), spec_good[_i].canonical);
	pipeline_hash(first, &a);
	pipeline_hash(again, &b);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	pipeline_free(first);
	pipeline_free(again);
}
END_TEST

/* Frozen: these name results in caches and recordings. A change of pixels changes ENGINE_PIXELS. */
static const struct {
	const char *name, *hash;
	bool is_random;
	enum pipeline_dtype dtype;
	uint64_t bytes;
} spec_named[] = {
    {"imagenet-train", "a418773ef9ea91e0b96b3ecb7da2f896600b37cb3664b416e01412a9a503f497", true,
     PIPELINE_F32, 602112},
    {"imagenet-train-u8", "b63f2bc889795ac168aac06c441a0a5ec6079f2f55274b6dd31d6f8e476aa132", true,
     PIPELINE_U8, 150528},
    {"imagenet-eval", "d6b9a4091c20872c8a6177303f8637b4ac9e076d7d93a3b13c2b399da38fb26c", false,
     PIPELINE_F32, 602112},
    {"imagenet-eval-u8", "1ca3f7a133cec7b119e51f4db843d0a1cea7a946fbff2f0175fec593ecc46a69", false,
     PIPELINE_U8, 150528},
};

START_TEST(named)
{
	const char *const *names;
	const struct pipeline_field *fields;
	struct pipeline *pipeline = spec_compiled(pipeline_named(spec_named[_i].name));
	struct hash_id id;
	char hex[65];

	ck_assert_uint_eq(pipeline_names(&names), BASE_ARRAY_LEN(spec_named));
	ck_assert_str_eq(names[_i], spec_named[_i].name);
	pipeline_hash(pipeline, &id);
	ck_assert_str_eq(hash_hex(&id, hex), spec_named[_i].hash);
	ck_assert(pipeline_is_random(pipeline) == spec_named[_i].is_random);
	ck_assert_uint_eq(pipeline_fields(pipeline, &fields), 2);
	ck_assert_str_eq(fields[0].name, "image");
	ck_assert_uint_eq(fields[0].dtype, spec_named[_i].dtype);
	ck_assert_uint_eq(fields[0].ndim, 3);
	ck_assert_uint_eq(fields[0].shape[0], 3);
	ck_assert_uint_eq(fields[0].shape[1], 224);
	ck_assert_uint_eq(fields[0].shape[2], 224);
	ck_assert_uint_eq(fields[0].bytes, spec_named[_i].bytes);
	ck_assert_str_eq(fields[1].name, "label");
	ck_assert_uint_eq(fields[1].dtype, PIPELINE_I64);
	ck_assert_uint_eq(fields[1].ndim, 0);
	ck_assert_uint_eq(fields[1].bytes, 8);
	pipeline_free(pipeline);
}
END_TEST

START_TEST(no_such_name)
{
	ck_assert_ptr_null(pipeline_named("imagenet"));
	ck_assert_ptr_null(pipeline_named(""));
}
END_TEST

static const struct {
	const char *text;
	enum pipeline_dtype dtype;
	uint64_t shape[3];
	bool is_random;
} spec_shapes[] = {
    {"[" D ",{\"op\":\"center_crop\",\"size\":[7,9]}]", PIPELINE_U8, {7, 9, 3}, false},
    {"[" D ",{\"op\":\"resize\",\"size\":[7,9]},{\"op\":\"layout\"}]",
     PIPELINE_U8,
     {3, 7, 9},
     false},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[7,9]},{\"op\":\"resize\",\"size\":14}]",
     PIPELINE_U8,
     {14, 18, 3},
     false},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[9,7]},{\"op\":\"resize\",\"size\":10}]",
     PIPELINE_U8,
     {12, 10, 3},
     false},
    {"[" D "," CROP "," NORM "]", PIPELINE_F32, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"layout\"}," NORM ",{\"op\":\"cast\",\"dtype\":\"f16\"}]",
     PIPELINE_F16,
     {3, 8, 8},
     false},
    {"[" D "," CROP ",{\"op\":\"layout\"}," NORM ",{\"op\":\"cast\",\"dtype\":\"bf16\"}]",
     PIPELINE_BF16,
     {3, 8, 8},
     false},
    {"[" D "," CROP ",{\"op\":\"hflip\",\"p\":0}]", PIPELINE_U8, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"hflip\",\"p\":1}]", PIPELINE_U8, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"hflip\",\"p\":0.1}]", PIPELINE_U8, {8, 8, 3}, true},
    {"[" D "," CROP ",{\"op\":\"vflip\",\"p\":0}]", PIPELINE_U8, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"vflip\"}]", PIPELINE_U8, {8, 8, 3}, true},
    {"[" D "," CROP ",{\"op\":\"pad\",\"padding\":[1,2,3,4]}]", PIPELINE_U8, {14, 12, 3}, false},
    {"[" D ",{\"op\":\"random_crop\",\"size\":[7,9]}]", PIPELINE_U8, {7, 9, 3}, true},
    {"[" D ",{\"op\":\"patches\",\"max_patches\":9,\"patch_size\":4}]",
     PIPELINE_U8,
     {9, 48},
     false},
    {"[" D ",{\"op\":\"patches\",\"max_pixels\":3136,\"patch_size\":7,\"temporal_patch_size\":2},"
     "{\"op\":\"hflip\"}]",
     PIPELINE_U8,
     {178, 294},
     true},
    {"[" D ",{\"op\":\"five_crop\",\"size\":[7,9]}]", PIPELINE_U8, {5, 7, 9}, false},
    {"[" D ",{\"op\":\"ten_crop\",\"size\":[7,9]}]", PIPELINE_U8, {10, 7, 9}, false},
    {"[" D ",{\"op\":\"five_crop\",\"size\":[7,9]},{\"op\":\"layout\"}]",
     PIPELINE_U8,
     {5, 3, 7},
     false},
    {"[" D "," CROP ",{\"op\":\"rotate\",\"degrees\":0}]", PIPELINE_U8, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"rotate\",\"degrees\":[1,2]}]", PIPELINE_U8, {8, 8, 3}, true},
    {"[" D "," CROP ",{\"op\":\"affine\",\"degrees\":[9,9],\"scale\":[2,2]}]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D "," CROP ",{\"op\":\"affine\",\"degrees\":0,\"shear\":[1,1,2,3]}]",
     PIPELINE_U8,
     {8, 8, 3},
     true},
    {"[" D "," CROP ",{\"op\":\"affine\",\"degrees\":0,\"translate\":[0,0.1]}]",
     PIPELINE_U8,
     {8, 8, 3},
     true},
    {"[" D "," CROP ",{\"op\":\"random_perspective\",\"p\":1}]", PIPELINE_U8, {8, 8, 3}, true},
    {"[" D "," CROP ",{\"op\":\"random_perspective\",\"p\":0}]", PIPELINE_U8, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"random_perspective\",\"distortion_scale\":0}]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D ",{\"op\":\"scale_jitter\",\"target_size\":8}," CROP "]", PIPELINE_U8, {8, 8, 3}, true},
    {"[" D ",{\"op\":\"scale_jitter\",\"target_size\":8,\"scale_range\":[1,1]}," CROP "]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D ",{\"op\":\"random_shortest_size\",\"min_size\":8}," CROP "]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D ",{\"op\":\"random_resize\",\"min_size\":8,\"max_size\":9}," CROP "]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D "," CROP ",{\"op\":\"random_zoom_out\",\"p\":0}]", PIPELINE_U8, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"random_zoom_out\",\"side_range\":[1,1]}]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D ",{\"op\":\"fixed_size_crop\",\"size\":8}]", PIPELINE_U8, {8, 8, 3}, true},
    {BOXED ",{\"op\":\"random_iou_crop\"}," CROP "]", PIPELINE_U8, {8, 8, 3}, true},
    {BOXED "," CROP ",{\"op\":\"random_iou_crop\",\"sampler_options\":1}]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[8,6]},{\"op\":\"rotate\",\"degrees\":[-90,-90],"
     "\"expand\":true}]",
     PIPELINE_U8,
     {6, 8, 3},
     false},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[8,6]},{\"op\":\"rotate\",\"degrees\":[180,180],"
     "\"expand\":true}]",
     PIPELINE_U8,
     {8, 6, 3},
     false},
    {"[" D "," CROP ",{\"op\":\"affine\",\"degrees\":0,\"scale\":[2,2],\"scale_y\":[1,2]}]",
     PIPELINE_U8,
     {8, 8, 3},
     true},
    {"[" D "," CROP ",{\"op\":\"affine\",\"degrees\":0,\"scale_y\":[2,2]}]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D "," CROP ",{\"op\":\"gaussian_blur\",\"kernel_size\":3}]", PIPELINE_U8, {8, 8, 3}, true},
    {"[" D "," CROP ",{\"op\":\"jpeg\",\"quality\":[8,9]}]", PIPELINE_U8, {8, 8, 3}, true},
    {"[" D "," CROP ",{\"op\":\"coarse_dropout\"}]", PIPELINE_U8, {8, 8, 3}, true},
    {"[" D "," CROP ",{\"op\":\"coarse_dropout\",\"p\":0}]", PIPELINE_U8, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"jpeg\",\"quality\":9}]", PIPELINE_U8, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"elastic_transform\"}]", PIPELINE_U8, {8, 8, 3}, true},
    {"[" D "," CROP ",{\"op\":\"elastic_transform\",\"alpha\":[0,0]}]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D "," CROP ",{\"op\":\"gaussian_noise\"}," NORM "]", PIPELINE_F32, {8, 8, 3}, true},
    {"[" D "," CROP ",{\"op\":\"gaussian_noise\",\"p\":0}," NORM "]",
     PIPELINE_F32,
     {8, 8, 3},
     false},
    {"[" D "," CROP ",{\"op\":\"gaussian_noise\",\"sigma\":0}," NORM "]",
     PIPELINE_F32,
     {8, 8, 3},
     false},
    {"[" D "," CROP "," NORM ",{\"op\":\"cast\",\"dtype\":\"f16\"},{\"op\":\"gaussian_noise\"}]",
     PIPELINE_F16,
     {8, 8, 3},
     true},
    {"[" D "," CROP ",{\"op\":\"gaussian_blur\",\"kernel_size\":3,\"sigma\":1}]",
     PIPELINE_U8,
     {8, 8, 3},
     false},
    {"[" D "," CROP "," NORM ",{\"op\":\"random_erasing\",\"value\":0.5}]",
     PIPELINE_F32,
     {8, 8, 3},
     true},
    {"[" D "," CROP ",{\"op\":\"random_erasing\",\"p\":0}]", PIPELINE_U8, {8, 8, 3}, false},
    {"[" D "," CROP ",{\"op\":\"resize\",\"size\":null,\"max_size\":4}]",
     PIPELINE_U8,
     {4, 4, 3},
     false},
    {"[" D
     ",{\"op\":\"center_crop\",\"size\":[7,9]},{\"op\":\"resize\",\"size\":14,\"max_size\":15}]",
     PIPELINE_U8,
     {11, 15, 3},
     false},
};

START_TEST(shapes)
{
	struct pipeline *pipeline = spec_compiled(spec_shapes[_i].text);
	const struct pipeline_field *fields;

	pipeline_fields(pipeline, &fields);
	ck_assert_uint_eq(fields[0].dtype, spec_shapes[_i].dtype);
	for (unsigned d = 0; d < 3; d++)
		ck_assert_uint_eq(fields[0].shape[d], spec_shapes[_i].shape[d]);
	ck_assert(pipeline_is_random(pipeline) == spec_shapes[_i].is_random);
	pipeline_free(pipeline);
}
END_TEST

/* five_crop: a dimension in front, and five times the bytes. */
START_TEST(views)
{
	struct pipeline *pipeline =
	    spec_compiled("[" D ",{\"op\":\"five_crop\",\"size\":[7,9]}," NORM "]");
	const struct pipeline_field *fields;

	pipeline_fields(pipeline, &fields);
	ck_assert_uint_eq(fields[0].ndim, 4);
	ck_assert_uint_eq(fields[0].shape[3], 3);
	ck_assert_uint_eq(fields[0].bytes, 5 * 7 * 9 * 3 * 4);
	pipeline_free(pipeline);
}
END_TEST

/* Different parameters are different pipelines. */
START_TEST(hashes_differ)
{
	static const char *const texts[] = {
	    "[" D "," CROP "]",
	    "[" D ",{\"op\":\"center_crop\",\"size\":9}]",
	    "[" D "," CROP ",{\"op\":\"hflip\"}]",
	    "[" D "," CROP ",{\"op\":\"hflip\",\"p\":0.50000000000000011}]",
	    "[" D "," CROP ",{\"op\":\"layout\"}]",
	    "[" D "," CROP ",{\"op\":\"cast\"}]",
	};
	struct hash_id id[BASE_ARRAY_LEN(texts)];

	for (unsigned i = 0; i < BASE_ARRAY_LEN(texts); i++) {
		struct pipeline *pipeline = spec_compiled(texts[i]);

		pipeline_hash(pipeline, &id[i]);
		pipeline_free(pipeline);
		for (unsigned k = 0; k < i; k++)
			ck_assert_mem_ne(&id[i], &id[k], sizeof(id[0]));
	}
}
END_TEST

/* The constants that say where a parameter stands, against the table's names. */
START_TEST(parameter_numbers)
{
	static const struct {
		enum op_id op;
		unsigned number;
		const char *name;
	} places[] = {
#define OP(ident, name, impl, help)
#define PARAM(op, ident, name, type, fallback, help) {OP_##op, OP_##op##_##ident, name},
#include "pipeline/spec/op_tbl.h"
#undef OP
#undef PARAM
	};
	unsigned total = 0;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(places); i++) {
		const struct op_param *params;

		ck_assert_uint_lt(places[i].number, op_params(places[i].op, &params));
		ck_assert_str_eq(params[places[i].number].name, places[i].name);
	}
	for (unsigned op = 0; op < OP_COUNT; op++) {
		const struct op_param *params;
		unsigned n = op_params(op, &params);

		ck_assert_uint_le(n, OP_MAX_PARAMS);
		ck_assert_uint_eq(op_find(op_name(op)), op);
		total += n;
	}
	ck_assert_uint_eq(total, BASE_ARRAY_LEN(places));
}
END_TEST

static const char *const kind_words[] = {"one", "two", NULL};

/* Every kind of parameter: what is written, what is wrong with it or how it is written back. */
static const struct {
	struct op_type type;
	const char *text, *wrong, *canonical;
} kinds[] = {
    {{OP_TYPE_BOOL}, "true", NULL, "true"},
    {{OP_TYPE_BOOL}, "false", NULL, "false"},
    {{OP_TYPE_BOOL}, "1", "is neither true nor false", NULL},
    {{OP_TYPE_INTEGER(0, 8)}, "8", NULL, "8"},
    {{OP_TYPE_INTEGER(0, 8)}, "9", "is not from 0 to 8", NULL},
    {{OP_TYPE_INTEGER(0, 8)}, "-1", "is not from 0 to 8", NULL},
    {{OP_TYPE_INTEGER(0, 8)}, "1.0", "is no whole number", NULL},
    {{OP_TYPE_INTEGER(0, 8)}, "[1]", "is no whole number", NULL},
    {{OP_TYPE_INTEGER(0, 8)}, "null", "is no whole number", NULL},
    {{OP_OR_NULL(OP_TYPE_INTEGER(0, 8))}, "null", NULL, "null"},
    {{OP_OR_NULL(OP_TYPE_INTEGER(0, 8))}, "3", NULL, "3"},
    {{OP_TYPE_NUMBER(-1, 1.5)}, "-0.0", NULL, "0"},
    {{OP_TYPE_NUMBER(-1, 1.5)}, "1.50", NULL, "1.5"},
    {{OP_TYPE_NUMBER(-1, 1.5)}, "1.6", "is not from -1 to 1.5", NULL},
    {{OP_TYPE_NUMBER(-1, 1.5)}, "\"1\"", "is no number", NULL},
    {{OP_TYPE_PAIR(0, 10)}, "[1, 2.5]", NULL, "[1,2.5]"},
    {{OP_TYPE_PAIR(0, 10)}, "[3, 3]", NULL, "[3,3]"},
    {{OP_TYPE_PAIR(0, 10)}, "[3, 2]", "begins with the larger number", NULL},
    {{OP_TYPE_PAIR(0, 10)}, "[3, 11]", "is not from 0 to 10", NULL},
    {{OP_TYPE_PAIR(0, 10)}, "3", "is no pair of numbers", NULL},
    {{OP_TYPE_PAIR(0, 10)}, "[1,2,3]", "is no pair of numbers", NULL},
    {{OP_TYPE_TWO(0, 1)}, "[0.5, 0.25]", NULL, "[0.5,0.25]"},
    {{OP_TYPE_TWO(0, 1)}, "[0.5]", "is no pair of numbers", NULL},
    {{OP_TYPE_AROUND_0(180)}, "30", NULL, "[-30,30]"},
    {{OP_TYPE_AROUND_0(180)}, "0", NULL, "[0,0]"},
    {{OP_TYPE_AROUND_0(180)}, "[-10, 20]", NULL, "[-10,20]"},
    {{OP_TYPE_AROUND_0(180)}, "-30", "is a number below 0", NULL},
    {{OP_TYPE_AROUND_0(180)}, "181", "is not from -180 to 180", NULL},
    {{OP_TYPE_AROUND_0(180)}, "[30]", "is neither a number nor a pair", NULL},
    {{OP_TYPE_AROUND_1(10)}, "0.5", NULL, "[0.5,1.5]"},
    {{OP_TYPE_AROUND_1(10)}, "2", NULL, "[0,3]"},
    {{OP_TYPE_AROUND_1(10)}, "[0.2, 0.3]", NULL, "[0.2,0.3]"},
    {{OP_TYPE_AROUND_1(10)}, "9.5", "is not from 0 to 10", NULL},
    {{OP_TYPE_AROUND_1(10)}, "[-0.2, 0.3]", "is not from 0 to 10", NULL},
    {{OP_TYPE_SPAN(0.1, 2)}, "0.5", NULL, "[0.5,0.5]"},
    {{OP_TYPE_SPAN(0.1, 2)}, "[0.1, 2.0]", NULL, "[0.1,2]"},
    {{OP_TYPE_SPAN(0.1, 2)}, "0", "is not from 0.1 to 2", NULL},
    {{OP_TYPE_SPAN(0.1, 2)}, "[2, 1]", "begins with the larger number", NULL},
    {{OP_TYPE_ODD(9)}, "3", NULL, "[3,3]"},
    {{OP_TYPE_ODD(9)}, "[3, 5]", NULL, "[3,5]"},
    {{OP_TYPE_ODD(9)}, "4", "is not odd", NULL},
    {{OP_TYPE_ODD(9)}, "11", "is not from 1 to 9", NULL},
    {{OP_TYPE_ODD(9)}, "[]", "is no size", NULL},
    {{OP_TYPE_SIDES(0, 9)}, "1", NULL, "[1,1,1,1]"},
    {{OP_TYPE_SIDES(0, 9)}, "[1, 2]", NULL, "[1,2,1,2]"},
    {{OP_TYPE_SIDES(0, 9)}, "[1, 2, 3, 4]", NULL, "[1,2,3,4]"},
    {{OP_TYPE_SIDES(0, 9)}, "[1, 2, 3]", "is neither one, two nor four whole numbers", NULL},
    {{OP_TYPE_SIDES(0, 9)}, "[1, 10]", "is not from 0 to 9", NULL},
    {{OP_TYPE_SHEAR(45)}, "10", NULL, "[-10,10,0,0]"},
    {{OP_TYPE_SHEAR(45)}, "[1, 2]", NULL, "[1,2,0,0]"},
    {{OP_TYPE_SHEAR(45)}, "[1, 2, 3, 4]", NULL, "[1,2,3,4]"},
    {{OP_TYPE_SHEAR(45)}, "[1, 2, 4, 3]", "has a larger number before a smaller one", NULL},
    {{OP_TYPE_SHEAR(45)}, "[1, 46]", "is not from -45 to 45", NULL},
    {{OP_TYPE_COLOR}, "7", NULL, "[7,7,7]"},
    {{OP_TYPE_COLOR}, "[7]", NULL, "[7,7,7]"},
    {{OP_TYPE_COLOR}, "[0, 128, 255]", NULL, "[0,128,255]"},
    {{OP_TYPE_COLOR}, "[0, 128]", "is neither one nor three whole numbers", NULL},
    {{OP_TYPE_COLOR}, "256", "is not from 0 to 255", NULL},
    {{OP_TYPE_VALUE(kind_words)}, "0.5", NULL, "[0.5,0.5,0.5]"},
    {{OP_TYPE_VALUE(kind_words)}, "[1, 2, 3]", NULL, "[1,2,3]"},
    {{OP_TYPE_VALUE(kind_words)}, "\"two\"", NULL, "\"two\""},
    {{OP_TYPE_VALUE(kind_words)}, "\"three\"", "is none of its words", NULL},
    {{OP_TYPE_VALUE(kind_words)}, "[1, 2]", "is neither one nor three numbers", NULL},
    {{OP_TYPE_WORD(kind_words)}, "\"one\"", NULL, "\"one\""},
    {{OP_TYPE_WORD(kind_words)}, "1", "is no string", NULL},
    {{OP_TYPE_LIST(0, 9)}, "[1, 2, 9, 0]", NULL, "[1,2,9,0]"},
    {{OP_TYPE_LIST(0, 9)}, "[1, 2, 10]", "is not from 0 to 9", NULL},
    {{OP_TYPE_LIST(0, 9)}, "[1, 2.5]", "is no list of whole numbers", NULL},
    {{OP_TYPE_LIST(0, 9)}, "[]", "is an empty list", NULL},
    {{OP_TYPE_LIST(0, 9)}, "3", "is no list of whole numbers", NULL},
    {{OP_OR_NULL(OP_TYPE_LIST(0, 9))}, "null", NULL, "null"},
    {{OP_TYPE_LISTS(-9, 9)}, "[[1, -2], [], [3]]", NULL, "[[1,-2],[],[3]]"},
    {{OP_TYPE_LISTS(-9, 9)}, "[[1, 2], 3]", "is no list of whole numbers", NULL},
    {{OP_TYPE_LISTS(-9, 9)}, "[[1, 2], [10]]", "is not from -9 to 9", NULL},
    {{OP_TYPE_LISTS(-9, 9)}, "7", "is no list of lists of whole numbers", NULL},
};

START_TEST(values)
{
	struct op_list *ops = calloc(1, sizeof(*ops));
	struct json_in *json;
	struct op_value value;
	char why[SPEC_VALUE_WHY], *text = NULL;
	const char *wrong;
	struct diag diag;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert(ops && out);
	ops->pooled = 5; /* an earlier list stands there */
	ck_assert_int_eq(json_in_parse(kinds[_i].text, strlen(kinds[_i].text), 1000, &json, &diag),
			 0);
	wrong = spec_value_read(json, &kinds[_i].type, ops, &value, why);
	if (kinds[_i].wrong) {
		ck_assert_msg(wrong && strcmp(wrong, kinds[_i].wrong) == 0, "%s: %s",
			      kinds[_i].text, wrong);
	} else {
		ck_assert_msg(!wrong, "%s: %s", kinds[_i].text, wrong);
		spec_value_put(out, ops, &value, &kinds[_i].type);
	}
	fclose(out);
	ck_assert_str_eq(text, kinds[_i].wrong ? "" : kinds[_i].canonical);
	json_in_free(json);
	free(text);
	free(ops);
}
END_TEST

/* The default of each parameter is a value of its type; one that came late is hidden. */
START_TEST(defaults)
{
	struct op_list *ops = calloc(1, sizeof(*ops));

	ck_assert_ptr_nonnull(ops);
	for (unsigned op = 0; op < OP_COUNT; op++) {
		const struct op_param *params;
		unsigned n = op_params(op, &params);

		for (unsigned i = 0; i < n; i++) {
			char why[SPEC_VALUE_WHY];
			struct op_value value;
			struct json_in *json;
			struct diag diag;
			const char *text = params[i].fallback;

			ck_assert(text || !params[i].type.late);
			if (!text)
				continue;
			ck_assert_int_eq(json_in_parse(text, strlen(text), 1000, &json, &diag), 0);
			ck_assert_ptr_null(
			    spec_value_read(json, &params[i].type, ops, &value, why));
			json_in_free(json);
		}
	}
	free(ops);
}
END_TEST

/* Lists of the longest text there can be fit; a spec that grows too long is refused. */
START_TEST(long_lists)
{
	const struct op_type type = {OP_TYPE_LIST(0, 9)};
	struct op_list *ops = calloc(1, sizeof(*ops));
	char *text = malloc(PIPELINE_MAX_TEXT), why[SPEC_VALUE_WHY];
	struct json_in *json;
	struct op_value value;
	struct diag diag;

	ck_assert(ops && text);
	for (unsigned i = 0; i < PIPELINE_MAX_TEXT; i++)
		text[i] = i % 2 ? '1' : ',';
	text[0] = '[';
	text[PIPELINE_MAX_TEXT - 2] = ']';
	text[PIPELINE_MAX_TEXT - 1] = ' ';
	ck_assert_int_eq(json_in_parse(text, PIPELINE_MAX_TEXT, PIPELINE_MAX_TEXT, &json, &diag),
			 0);
	ck_assert_ptr_null(spec_value_read(json, &type, ops, &value, why));
	ck_assert_uint_eq(value.count, PIPELINE_MAX_TEXT / 2 - 1);
	ck_assert_int_eq(ops->pool[value.count - 1], 1);
	ck_assert_str_eq(spec_value_read(json, &type, ops, &value, why), "is too long");
	json_in_free(json);
	free(text);
	free(ops);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spec");
	TCase *tcase = tcase_create("spec");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, bad, 0, BASE_ARRAY_LEN(spec_bad));
	tcase_add_test(tcase, too_long);
	tcase_add_test(tcase, too_many);
	tcase_add_loop_test(tcase, canonical, 0, BASE_ARRAY_LEN(spec_good));
	tcase_add_loop_test(tcase, named, 0, BASE_ARRAY_LEN(spec_named));
	tcase_add_test(tcase, no_such_name);
	tcase_add_loop_test(tcase, shapes, 0, BASE_ARRAY_LEN(spec_shapes));
	tcase_add_test(tcase, views);
	tcase_add_test(tcase, hashes_differ);
	tcase_add_test(tcase, parameter_numbers);
	tcase_add_loop_test(tcase, values, 0, BASE_ARRAY_LEN(kinds));
	tcase_add_test(tcase, defaults);
	tcase_add_test(tcase, long_lists);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
