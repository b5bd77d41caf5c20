/* The file of rows that rows.rs writes, read into memory: batches, in each the columns one after another as arrays. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct rows {
    uint32_t columns, batches, batch_rows;
    const char *kinds; /* of each column: s int16, i int32, l int64, d double */
    char **arrays;     /* batch * columns + column */
};

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static size_t value_size(char kind) { return kind == 's' ? 2 : kind == 'i' ? 4 : 8; }

/* A whole file in memory. */
static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) fail(path, "cannot be read");
    *length = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*length + 1);
    if (!bytes || fread(bytes, 1, *length, file) != *length) fail(path, "cannot be read");
    fclose(file);
    return bytes;
}

static inline struct rows read_rows(const char *path) {
    size_t length;
    char *at = read_file(path, &length);
    struct rows rows;
    memcpy(&rows.columns, at, 4);
    memcpy(&rows.batches, at + 4, 4);
    memcpy(&rows.batch_rows, at + 8, 4);
    rows.kinds = at + 16;
    at += 16 + (rows.columns + 7) / 8 * 8;
    rows.arrays = malloc(sizeof *rows.arrays * rows.batches * rows.columns);
    for (size_t place = 0; place < (size_t)rows.batches * rows.columns; place++) {
        rows.arrays[place] = at;
        at += value_size(rows.kinds[place % rows.columns]) * rows.batch_rows;
    }
    return rows;
}

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
