/* A disk that a test looks at and makes fail: loaded before the C library (LD_PRELOAD), it stands between a program and its files.
 *
 * DISK_BELOW    only files whose paths begin so are looked at
 * DISK_LOG      every change to them is appended there: struct record, then its bytes. Marks of the test stand between them.
 * DISK_CONTROL  struct control, which the test changes while the program runs
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct record {
    uint32_t kind;
    uint32_t file; /* what open gave a number to; 0 for none */
    uint64_t offset;
    uint64_t length; /* bytes that follow */
};

enum { OPENED = 1, WRITTEN = 2, CUT = 3, SYNC_BEGUN = 4, SYNCED = 5, REMOVED = 6, RENAMED = 7, MADE = 8 };

struct control {
    int32_t write_errno; /* what writes fail with; 0 for none */
    int32_t write_times; /* how often; -1 for ever */
    int32_t sync_errno;
    int32_t sync_times;
    int64_t clock_ns; /* added to the clock of the day */
};

#define FILES 4096
static uint32_t numbers[FILES]; /* by descriptor */
static uint32_t last_number;
static const char *below;
static int log_fd = -1;
static struct control *control;
static struct control none;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("DISK_CONTROL");
    control = &none;
    if (path) {
        int fd = open(path, O_RDWR);
        void *map = mmap(0, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED) control = map;
        close(fd);
    }
    path = getenv("DISK_LOG");
    if (path) log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    below = getenv("DISK_BELOW");
}

static void tell(uint32_t kind, uint32_t file, uint64_t offset, const void *bytes, size_t length) {
    struct record head = { kind, file, offset, length };
    struct iovec parts[2] = { { &head, sizeof head }, { (void *)bytes, length } };
    if (log_fd >= 0 && writev(log_fd, parts, length ? 2 : 1) < 0) abort();
}

static uint32_t number_of(int fd) { return fd >= 0 && fd < FILES ? numbers[fd] : 0; }

static int is_below(const char *path) { return below && path && strncmp(path, below, strlen(below)) == 0; }

/* Whether this time it fails. */
static int fails(int32_t *with, int32_t *times) {
    int32_t what = __atomic_load_n(with, __ATOMIC_SEQ_CST);
    if (!what) return 0;
    if (__atomic_load_n(times, __ATOMIC_SEQ_CST) < 0) return what;
    if (__atomic_fetch_sub(times, 1, __ATOMIC_SEQ_CST) > 0) return what;
    __atomic_store_n(times, 0, __ATOMIC_SEQ_CST);
    return 0;
}

static int opened(int fd, const char *path, int flags) {
    if (fd < 0 || fd >= FILES) return fd;
    numbers[fd] = 0;
    if (!is_below(path)) return fd;
    pthread_mutex_lock(&lock);
    numbers[fd] = ++last_number;
    /* offset says what was asked for, so that a file that is made is told from one that was there */
    tell(OPENED, numbers[fd], flags, path, strlen(path));
    if (flags & O_TRUNC) tell(CUT, numbers[fd], 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return fd;
}

static mode_t mode_of(int flags, va_list more) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; }

int open(const char *path, int flags, ...) {
    REAL(open);
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    return opened(real(path, flags, mode), path, flags);
}

int open64(const char *path, int flags, ...) {
    REAL(open64);
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    return opened(real(path, flags, mode), path, flags);
}

int close(int fd) {
    REAL(close);
    if (fd >= 0 && fd < FILES) numbers[fd] = 0;
    return real(fd);
}

static ssize_t written(int fd, const void *bytes, ssize_t length, off_t offset) {
    if (length > 0 && number_of(fd)) tell(WRITTEN, number_of(fd), offset, bytes, length);
    return length;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    REAL(pwrite);
    if (number_of(fd) && (errno = fails(&control->write_errno, &control->write_times))) return -1;
    return written(fd, bytes, real(fd, bytes, length, offset), offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    REAL(pwrite64);
    if (number_of(fd) && (errno = fails(&control->write_errno, &control->write_times))) return -1;
    return written(fd, bytes, real(fd, bytes, length, offset), offset);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(write);
    if (!number_of(fd)) return real(fd, bytes, length);
    if ((errno = fails(&control->write_errno, &control->write_times))) return -1;
    int flags = fcntl(fd, F_GETFL);
    off_t offset = lseek(fd, 0, flags & O_APPEND ? SEEK_END : SEEK_CUR);
    return written(fd, bytes, real(fd, bytes, length), offset);
}

static int cut(int fd, int outcome, off_t length) {
    if (outcome == 0 && number_of(fd)) tell(CUT, number_of(fd), length, 0, 0);
    return outcome;
}

int ftruncate(int fd, off_t length) {
    REAL(ftruncate);
    return cut(fd, real(fd, length), length);
}

int ftruncate64(int fd, off64_t length) {
    REAL(ftruncate64);
    return cut(fd, real(fd, length), length);
}

/* Room that is asked for ahead. Files that are made so are empty before. */
static int allocated(int fd, int (*real)(int, off_t, off_t), off_t offset, off_t length) {
    if (!number_of(fd)) return real(fd, offset, length);
    int outcome = fails(&control->write_errno, &control->write_times);
    if (outcome == 0 && (outcome = real(fd, offset, length)) == 0) cut(fd, 0, offset + length);
    return outcome;
}

int posix_fallocate(int fd, off_t offset, off_t length) {
    REAL(posix_fallocate);
    return allocated(fd, real, offset, length);
}

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
    REAL(posix_fallocate64);
    return allocated(fd, real, offset, length);
}

static int synced(int fd, int (*real)(int)) {
    if (!number_of(fd)) return real(fd);
    if ((errno = fails(&control->sync_errno, &control->sync_times))) return -1;
    tell(SYNC_BEGUN, number_of(fd), 0, 0, 0);
    /* What the disk holds is what the log says; the real one need not be waited for. */
    tell(SYNCED, number_of(fd), 0, 0, 0);
    return 0;
}

int fsync(int fd) {
    REAL(fsync);
    return synced(fd, real);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return synced(fd, real);
}

int unlink(const char *path) {
    REAL(unlink);
    int outcome = real(path);
    if (outcome == 0 && is_below(path)) tell(REMOVED, 0, 0, path, strlen(path));
    return outcome;
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    int outcome = real(path, mode);
    if (outcome == 0 && is_below(path)) tell(MADE, 0, 0, path, strlen(path));
    return outcome;
}

int rename(const char *from, const char *to) {
    REAL(rename);
    int outcome = real(from, to);
    if (outcome == 0 && is_below(to)) {
        char both[8192];
        size_t first = strlen(from) + 1, second = strlen(to);
        if (first + second <= sizeof both) {
            memcpy(both, from, first);
            memcpy(both + first, to, second);
            tell(RENAMED, 0, 0, both, first + second);
        }
    }
    return outcome;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(clock_gettime);
    int outcome = real(clock, now);
    if (outcome == 0 && clock == CLOCK_REALTIME && control) {
        int64_t ns = now->tv_sec * 1000000000LL + now->tv_nsec + __atomic_load_n(&control->clock_ns, __ATOMIC_SEQ_CST);
        now->tv_sec = ns / 1000000000LL;
        now->tv_nsec = ns % 1000000000LL;
    }
    return outcome;
}
