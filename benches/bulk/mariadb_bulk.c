/* Writes rows into MariaDB with the least work that its C library allows; all rows are prepared in memory before the clock starts.
 *
 * mariadb_bulk SOCKET USER PASSWORD DATABASE ROWS execute "INSERT INTO ..."   one bulk execute a batch, column by column
 * mariadb_bulk SOCKET USER PASSWORD DATABASE ROWS load "LOAD DATA LOCAL ..."  one LOAD DATA LOCAL a batch, as text
 *
 * Prints the seconds that it took. */

#include <mysql.h>

#include "rows.h"

struct text {
    char *start;
    size_t length, sent;
};

static double execute(MYSQL *mysql, const struct rows *rows, const char *sql) {
    MYSQL_STMT *statement = mysql_stmt_init(mysql);
    if (!statement || mysql_stmt_prepare(statement, sql, strlen(sql))) fail("prepare", mysql_error(mysql));
    unsigned int array_size = rows->batch_rows;
    mysql_stmt_attr_set(statement, STMT_ATTR_ARRAY_SIZE, &array_size);
    MYSQL_BIND *binds = calloc(rows->columns, sizeof *binds);
    for (uint32_t column = 0; column < rows->columns; column++) {
        char kind = rows->kinds[column];
        binds[column].buffer_type = kind == 's'   ? MYSQL_TYPE_SHORT
                                    : kind == 'i' ? MYSQL_TYPE_LONG
                                    : kind == 'l' ? MYSQL_TYPE_LONGLONG
                                                  : MYSQL_TYPE_DOUBLE;
    }
    double begin_s = now_s();
    for (uint32_t batch = 0; batch < rows->batches; batch++) {
        for (uint32_t column = 0; column < rows->columns; column++)
            binds[column].buffer = rows->arrays[(size_t)batch * rows->columns + column];
        if (mysql_stmt_bind_param(statement, binds)) fail("bind", mysql_stmt_error(statement));
        if (mysql_stmt_execute(statement)) fail("execute", mysql_stmt_error(statement));
        if (mysql_stmt_affected_rows(statement) != rows->batch_rows) fail("execute", "another number of rows");
    }
    return now_s() - begin_s;
}

static struct text batch_as_text(const struct rows *rows, uint32_t batch) {
    struct text text = {malloc((size_t)rows->batch_rows * rows->columns * 26), 0, 0};
    char *at = text.start;
    for (uint32_t row = 0; row < rows->batch_rows; row++)
        for (uint32_t column = 0; column < rows->columns; column++) {
            const char *array = rows->arrays[(size_t)batch * rows->columns + column];
            switch (rows->kinds[column]) {
            case 's': at += sprintf(at, "%d", ((const int16_t *)array)[row]); break;
            case 'i': at += sprintf(at, "%d", ((const int32_t *)array)[row]); break;
            case 'l': at += sprintf(at, "%lld", (long long)((const int64_t *)array)[row]); break;
            default: at += sprintf(at, "%.17g", ((const double *)array)[row]);
            }
            *at++ = column + 1 == rows->columns ? '\n' : '\t';
        }
    text.length = (size_t)(at - text.start);
    return text;
}

static int infile_begin(void **handle, const char *name, void *data) {
    (void)name;
    *handle = data;
    return 0;
}

static int infile_read(void *handle, char *buffer, unsigned int room) {
    struct text *text = *(struct text **)handle;
    size_t left = text->length - text->sent, length = left < room ? left : room;
    memcpy(buffer, text->start + text->sent, length);
    text->sent += length;
    return (int)length;
}

static void infile_end(void *handle) { (void)handle; }

static int infile_error(void *handle, char *message, unsigned int length) {
    (void)handle;
    snprintf(message, length, "no error is known");
    return 1;
}

static double load(MYSQL *mysql, const struct rows *rows, const char *sql) {
    struct text *texts = malloc(sizeof *texts * rows->batches), *current;
    for (uint32_t batch = 0; batch < rows->batches; batch++) texts[batch] = batch_as_text(rows, batch);
    mysql_set_local_infile_handler(mysql, infile_begin, infile_read, infile_end, infile_error, &current);
    double begin_s = now_s();
    for (uint32_t batch = 0; batch < rows->batches; batch++) {
        current = &texts[batch];
        if (mysql_query(mysql, sql)) fail("load", mysql_error(mysql));
        if (mysql_affected_rows(mysql) != rows->batch_rows) fail("load", "another number of rows");
    }
    return now_s() - begin_s;
}

int main(int count, char **arguments) {
    if (count != 8) fail(arguments[0], "needs 7 arguments");
    struct rows rows = read_rows(arguments[5]);
    MYSQL *mysql = mysql_init(NULL);
    unsigned int local_infile = 1;
    mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &local_infile);
    if (!mysql_real_connect(mysql, NULL, arguments[2], arguments[3], arguments[4], 0, arguments[1], 0))
        fail("connect", mysql_error(mysql));
    int is_execute = strcmp(arguments[6], "execute") == 0;
    printf("%.6f\n", (is_execute ? execute : load)(mysql, &rows, arguments[7]));
    mysql_close(mysql);
    return 0;
}
