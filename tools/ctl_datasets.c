/* SPDX-License-Identifier: Apache-2.0 */

/* access-ctl datasets: the data sets that have a name here, and who may use them. */

#include "tools/ctl.h"

#include "tools/ctl_value.h"
#include "tools/option.h"
#include "tools/table.h"

#define DATASETS_PATH 26

static void ctl_dataset_row(const struct json_in *dataset, struct table *table)
{
	const char *users = ctl_string(dataset, "users"), *groups = ctl_string(dataset, "groups");
	const char *pipeline = ctl_string(dataset, "pipeline");
	char who[160];

	snprintf(who, sizeof(who), "%.64s%s%.80s", users, *users && *groups ? "; " : "", groups);
	table_cell(table, "name:%s", ctl_string(dataset, "name"));
	table_cell(table, "%s", ctl_is(dataset, "allowed") ? "yes" : "no");
	ctl_cell_u64(table, dataset, "jobs");
	table_cell(table, "%s", ctl_string(dataset, "owner"));
	ctl_cell_cut(table, who, 22, false);
	table_cell(table, "%s", strpbrk(pipeline, "{[") ? "JSON" : *pipeline ? pipeline : "-");
	ctl_cell_cut(table, ctl_string(dataset, "path"), DATASETS_PATH, true);
	table_end_row(table);
}

void ctl_draw_datasets(const struct json_in *status, FILE *out)
{
	const struct json_in *datasets = json_in_member(status, "datasets");
	struct table table;

	if (json_in_count(datasets) == 0) {
		option_wrap(out, 0, 80,
			    "No data set has a name here that you may use. Who runs accessd gives "
			    "them, as dataset.NAME.path = ... (accessd.conf(5)).");
		return;
	}
	table_init(&table, "<dataset|<mine|jobs|<read as|<for|<pipeline|<path");
	JSON_IN_EACH(dataset, datasets)
		ctl_dataset_row(dataset, &table);
	table_print(&table, "", NULL, out);
}

int ctl_datasets_json(const struct json_in *status, const char *operand, FILE *out,
		      struct diag *diag)
{
	static const char *const texts[] = {"name",   "path",    "owner",   "users",
					    "groups", "contact", "pipeline"};
	const struct json_in *datasets = json_in_member(status, "datasets");
	struct json_out json;

	(void)operand;
	json_out_init(&json, false);
	json_out_array_begin(&json);
	JSON_IN_EACH(dataset, datasets) {
		json_out_object_begin(&json);
		for (size_t k = 0; k < BASE_ARRAY_LEN(texts); k++)
			json_out_member_string(&json, texts[k], ctl_string(dataset, texts[k]));
		json_out_member_bool(&json, "allowed", ctl_is(dataset, "allowed"));
		json_out_member_u64(&json, "jobs", ctl_u64(dataset, "jobs"));
		json_out_object_end(&json);
	}
	json_out_array_end(&json);
	return json_out_write(&json, out) ? diag_fail(diag, CTL_E_NONE, "out of memory") : 0;
}
