/* Reads the terminal through an io_uring: read, poll, epoll (on the ring), timed, pipe (no terminal). */
#include <errno.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    struct io_uring_params params;
    struct io_uring_sqe *entry;
    struct io_uring_getevents_arg argument;
    struct __kernel_timespec day = {86400, 0};
    static char buffer[100];
    const char *how = count > 1 ? words[1] : "";
    int ring, pipes[2], flags = IORING_ENTER_GETEVENTS;
    char *queue;

    memset(&params, 0, sizeof params);
    ring = syscall(SYS_io_uring_setup, 8, &params);
    if (ring < 0 || pipe(pipes) < 0) return 1;
    if (!strcmp(how, "probe")) return 0;
    queue = mmap(0, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
    entry = mmap(0, params.sq_entries * sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    memset(entry, 0, sizeof *entry);
    entry->opcode = !strcmp(how, "poll") ? IORING_OP_POLL_ADD : IORING_OP_READ;
    entry->fd = !strcmp(how, "pipe") ? pipes[0] : 0;
    if (entry->opcode == IORING_OP_POLL_ADD) {
        entry->poll32_events = 1;
    } else {
        entry->addr = (unsigned long)buffer;
        entry->len = sizeof buffer;
        entry->off = -1;
    }
    ((unsigned *)(queue + params.sq_off.array))[0] = 0;
    *(unsigned *)(queue + params.sq_off.tail) = 1;
    if (!strcmp(how, "epoll")) {
        struct epoll_event event = {EPOLLIN, {0}};
        int set = epoll_create1(0);
        epoll_ctl(set, EPOLL_CTL_ADD, ring, &event);
        syscall(SYS_io_uring_enter, ring, 1, 0, 0, 0, 0);
        /* The kernel interrupts the wait to finish the read. */
        while ((count = epoll_wait(set, &event, 1, -1)) < 0 && errno == EINTR) continue;
        return count != 1;
    }
    if (!strcmp(how, "timed")) {
        memset(&argument, 0, sizeof argument);
        argument.ts = (unsigned long)&day;
        flags |= IORING_ENTER_EXT_ARG;
        return syscall(SYS_io_uring_enter, ring, 1, 1, flags, &argument, sizeof argument) != 1;
    }
    return syscall(SYS_io_uring_enter, ring, 1, 1, flags, 0, 0) != 1;
}
