/* A disk that forgets: preloaded into a process, it keeps under PB_DISK_SHADOW what a strict medium would hold of the
 * files under PB_DISK_ROOT. Names are made, moved and removed at once; contents arrive only by fsync or fdatasync of
 * their file. sync_file_range counts for nothing. A kill in the middle of a copy is a sync that was cut short. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define RANGES 64
#define FILES 4096

struct range {
    off_t from, to;
};

struct dirty {
    ino_t inode;
    int count;
    struct range ranges[RANGES];
};

static struct dirty files[FILES];
static int file_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *shadow;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void) {
    root = getenv("PB_DISK_ROOT");
    shadow = getenv("PB_DISK_SHADOW");
}

/* The place of a path on the disk, or 0 where it is none of ours. */
static int on_disk(const char *path, char *place) {
    size_t length = root && shadow ? strlen(root) : 0;
    if (!length || strncmp(path, root, length) || (path[length] && path[length] != '/'))
        return 0;
    return snprintf(place, PATH_MAX, "%s%s", shadow, path + length) < PATH_MAX;
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return 1;
}

static struct dirty *entry(ino_t inode) {
    for (int i = 0; i < file_count; i++)
        if (files[i].inode == inode)
            return &files[i];
    if (file_count == FILES)
        abort();
    files[file_count].inode = inode;
    return &files[file_count++];
}

static void mark(int fd, off_t from, off_t to) {
    struct stat stat;
    char path[PATH_MAX], place[PATH_MAX];
    int saved = errno;
    if (from < to && !fstat(fd, &stat) && S_ISREG(stat.st_mode) && path_of(fd, path) && on_disk(path, place)) {
        pthread_mutex_lock(&lock);
        struct dirty *file = entry(stat.st_ino);
        if (file->count == RANGES) {
            for (int i = 1; i < RANGES; i++) {
                if (file->ranges[i].from < file->ranges[0].from)
                    file->ranges[0].from = file->ranges[i].from;
                if (file->ranges[i].to > file->ranges[0].to)
                    file->ranges[0].to = file->ranges[i].to;
            }
            file->count = 1;
        }
        file->ranges[file->count].from = from;
        file->ranges[file->count++].to = to;
        pthread_mutex_unlock(&lock);
    }
    errno = saved;
}

static void copy(int from, int to, struct range range) {
    static __thread char block[65536];
    while (range.from < range.to) {
        size_t want = range.to - range.from < (off_t)sizeof block ? (size_t)(range.to - range.from) : sizeof block;
        ssize_t got = pread(from, block, want, range.from);
        if (got <= 0)
            return;
        if (REAL(pwrite)(to, block, got, range.from) != got)
            abort();
        range.from += got;
    }
}

/* Answers 0 where the file is none of ours. */
static int sync_to_disk(int fd) {
    struct stat stat;
    char path[PATH_MAX], place[PATH_MAX];
    if (fstat(fd, &stat) || !path_of(fd, path) || !on_disk(path, place))
        return 0;
    if (!S_ISREG(stat.st_mode))
        return 1;
    pthread_mutex_lock(&lock);
    struct dirty *file = entry(stat.st_ino);
    struct dirty taken = *file;
    file->count = 0;
    pthread_mutex_unlock(&lock);
    int from = REAL(open)(path, O_RDONLY | O_CLOEXEC);
    int to = REAL(open)(place, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (from < 0 || to < 0)
        abort();
    for (int i = 0; i < taken.count; i++)
        copy(from, to, taken.ranges[i]);
    if (!fstat(from, &stat) && lseek(to, 0, SEEK_END) > stat.st_size && REAL(ftruncate)(to, stat.st_size))
        abort();
    close(from);
    close(to);
    return 1;
}

int fsync(int fd) {
    return sync_to_disk(fd) ? 0 : REAL(fsync)(fd);
}

int fdatasync(int fd) {
    return sync_to_disk(fd) ? 0 : REAL(fdatasync)(fd);
}

static int made(int fd, const char *path, int flags) {
    char place[PATH_MAX];
    int saved = errno;
    if (fd >= 0 && (flags & O_CREAT) && on_disk(path, place)) {
        int file = REAL(open)(place, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0)
            abort();
        close(file);
    }
    errno = saved;
    return fd;
}

#define MODE(flags)                                                                                                   \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                                           \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return made(REAL(open)(path, flags, mode), path, flags);
}

int open64(const char *path, int flags, ...) {
    MODE(flags)
    return made(REAL(open64)(path, flags, mode), path, flags);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return made(REAL(openat)(folder, path, flags, mode), path, flags);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return made(REAL(openat64)(folder, path, flags, mode), path, flags);
}

int mkdir(const char *path, mode_t mode) {
    char place[PATH_MAX];
    int done = REAL(mkdir)(path, mode);
    if (!done && on_disk(path, place) && REAL(mkdir)(place, 0700))
        abort();
    return done;
}

int rename(const char *from, const char *to) {
    char place_from[PATH_MAX], place_to[PATH_MAX];
    int done = REAL(rename)(from, to);
    if (!done && on_disk(from, place_from) && on_disk(to, place_to) && REAL(rename)(place_from, place_to))
        abort();
    return done;
}

int unlink(const char *path) {
    char place[PATH_MAX];
    int done = REAL(unlink)(path);
    if (!done && on_disk(path, place) && REAL(unlink)(place))
        abort();
    return done;
}

ssize_t write(int fd, const void *data, size_t length) {
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t wrote = REAL(write)(fd, data, length);
    if (at >= 0)
        mark(fd, at, at + wrote);
    return wrote;
}

ssize_t writev(int fd, const struct iovec *data, int count) {
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t wrote = REAL(writev)(fd, data, count);
    if (at >= 0)
        mark(fd, at, at + wrote);
    return wrote;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t at) {
    ssize_t wrote = REAL(pwrite)(fd, data, length, at);
    mark(fd, at, at + wrote);
    return wrote;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) {
    ssize_t wrote = REAL(pwrite64)(fd, data, length, at);
    mark(fd, at, at + wrote);
    return wrote;
}
