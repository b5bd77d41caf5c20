/* Writes rows into PostgreSQL with the least work that its C library allows: one binary COPY a batch, of bytes that the server itself
 * made with COPY TO and that are in memory before the clock starts.
 *
 * postgres_bulk "host=... " "COPY ... FROM STDIN ..." DIRECTORY BATCHES   reads DIRECTORY/0.copy, DIRECTORY/1.copy ...
 *
 * Prints the seconds that it took. */

#include <libpq-fe.h>

#include "rows.h"

int main(int count, char **arguments) {
    if (count != 5) fail(arguments[0], "needs 4 arguments");
    int batches = atoi(arguments[4]);
    char **bytes = malloc(sizeof *bytes * batches);
    size_t *lengths = malloc(sizeof *lengths * batches);
    for (int batch = 0; batch < batches; batch++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d.copy", arguments[3], batch);
        bytes[batch] = read_file(path, &lengths[batch]);
    }
    PGconn *connection = PQconnectdb(arguments[1]);
    if (PQstatus(connection) != CONNECTION_OK) fail("connect", PQerrorMessage(connection));
    double begin_s = now_s();
    for (int batch = 0; batch < batches; batch++) {
        PGresult *result = PQexec(connection, arguments[2]);
        if (PQresultStatus(result) != PGRES_COPY_IN) fail("copy", PQerrorMessage(connection));
        PQclear(result);
        if (PQputCopyData(connection, bytes[batch], (int)lengths[batch]) != 1) fail("copy", PQerrorMessage(connection));
        if (PQputCopyEnd(connection, NULL) != 1) fail("copy", PQerrorMessage(connection));
        while ((result = PQgetResult(connection))) {
            if (PQresultStatus(result) != PGRES_COMMAND_OK) fail("copy", PQerrorMessage(connection));
            PQclear(result);
        }
    }
    printf("%.6f\n", now_s() - begin_s);
    PQfinish(connection);
    return 0;
}
