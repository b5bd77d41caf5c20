// A driver manager that lies: about the lengths of values, about how many there are, and about what it has done. The text of a statement says about what.

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void *Handle;
typedef int16_t Return;

enum { SUCCESS = 0, WITH_INFO = 1, FAILED = -1, NO_DATA = 100 };

static __thread int fetched;
static __thread int pieces;
static __thread char lie[32];

static int lies(const char *about) { return strcmp(lie, about) == 0; }

static void take(const uint16_t *text, int32_t length) {
    memset(lie, 0, sizeof lie);
    for (int32_t place = 0; place < length && place < 31; place++) lie[place] = (char)text[place];
    fetched = pieces = 0;
}

static void put(uint16_t *place, const char *text) {
    while ((*place++ = (unsigned char)*text++) != 0) {}
}

Return SQLAllocHandle(int16_t kind, Handle from, Handle *made) {
    (void)kind, (void)from;
    *made = &fetched;
    return SUCCESS;
}

Return SQLFreeHandle(int16_t kind, Handle one) { return (void)kind, (void)one, SUCCESS; }
Return SQLSetEnvAttr(Handle one, int32_t what, void *value, int32_t length) {
    return (void)one, (void)what, (void)value, (void)length, SUCCESS;
}
Return SQLSetConnectAttr(Handle one, int32_t what, void *value, int32_t length) {
    return (void)one, (void)what, (void)value, (void)length, SUCCESS;
}
Return SQLGetConnectAttr(Handle one, int32_t what, void *value, int32_t length, int32_t *told) {
    return (void)one, (void)what, (void)value, (void)length, (void)told, FAILED;
}
Return SQLDriverConnectW(Handle one, void *window, const uint16_t *in, int16_t length, uint16_t *out, int16_t most, int16_t *told, uint16_t asks) {
    return (void)one, (void)window, (void)in, (void)length, (void)out, (void)most, (void)told, (void)asks, SUCCESS;
}
Return SQLDisconnect(Handle one) { return (void)one, SUCCESS; }

Return SQLGetInfoW(Handle one, uint16_t what, void *value, int16_t bytes, int16_t *length) {
    (void)one, (void)what, (void)bytes;
    put(value, "PostgreSQL");
    *length = 30000;
    return SUCCESS;
}

Return SQLPrepareW(Handle one, const uint16_t *text, int32_t length) { return (void)one, take(text, length), SUCCESS; }
Return SQLExecDirectW(Handle one, const uint16_t *text, int32_t length) {
    (void)one, take(text, length);
    return lies("failed") ? FAILED : SUCCESS;
}
Return SQLNumParams(Handle one, int16_t *count) {
    (void)one;
    *count = lies("parameters") ? -3 : 0;
    return SUCCESS;
}
Return SQLBindParameter(Handle one, uint16_t number, int16_t way, int16_t held, int16_t type, size_t size, int16_t digits, void *value, ptrdiff_t length, ptrdiff_t *told) {
    return (void)one, (void)number, (void)way, (void)held, (void)type, (void)size, (void)digits, (void)value, (void)length, (void)told, SUCCESS;
}
Return SQLExecute(Handle one) { return (void)one, SUCCESS; }
Return SQLNumResultCols(Handle one, int16_t *count) {
    (void)one;
    *count = lies("columns") ? -7 : lies("changes") ? 0 : 1;
    return SUCCESS;
}
Return SQLDescribeColW(Handle one, uint16_t number, uint16_t *name, int16_t most, int16_t *length, int16_t *type, size_t *size, int16_t *digits, int16_t *nullable) {
    (void)one, (void)number, (void)most, (void)size, (void)digits, (void)nullable;
    put(name, "a");
    *length = 30000;
    *type = lies("number") ? -5 : lies("odd") || lies("half") ? 12 : -3;
    return SUCCESS;
}
Return SQLRowCount(Handle one, ptrdiff_t *rows) {
    (void)one;
    *rows = -1;
    return SUCCESS;
}
Return SQLFetch(Handle one) {
    (void)one;
    return fetched++ == 0 ? SUCCESS : NO_DATA;
}

Return SQLGetData(Handle one, uint16_t number, int16_t held, void *value, ptrdiff_t bytes, ptrdiff_t *length) {
    (void)one, (void)number, (void)held;
    memset(value, 'x', bytes < 8 ? bytes : 8);
    if (lies("length")) {
        *length = -17;
    } else if (lies("odd")) {
        *length = 3;
    } else if (lies("half")) {
        ((uint16_t *)value)[0] = 0xd83d;
        *length = 2;
    } else if (lies("endless")) {
        *length = (ptrdiff_t)1 << 60;
        return WITH_INFO;
    } else if (lies("untold")) {
        *length = -4;
        return pieces++ < 3 ? WITH_INFO : NO_DATA;
    } else if (lies("total")) {
        *length = -4;
    } else if (lies("number")) {
        *length = 8;
        return WITH_INFO;
    } else {
        *length = 8;
    }
    return SUCCESS;
}

Return SQLMoreResults(Handle one) { return (void)one, NO_DATA; }
Return SQLFreeStmt(Handle one, uint16_t what) { return (void)one, (void)what, SUCCESS; }
Return SQLEndTran(int16_t kind, Handle one, int16_t how) { return (void)kind, (void)one, (void)how, SUCCESS; }
Return SQLCancel(Handle one) { return (void)one, SUCCESS; }
Return SQLGetDiagRecW(int16_t kind, Handle one, int16_t number, uint16_t *state, int32_t *native, uint16_t *message, int16_t most, int16_t *length) {
    (void)kind, (void)one, (void)number, (void)native;
    for (int place = 0; place < 6; place++) state[place] = 'A';
    for (int place = 0; place < most; place++) message[place] = 'B';
    *length = 32000;
    return SUCCESS;
}
