/* Starts N processes that sleep in one group; then the first one reads the terminal, or sleeps. All
   end of themselves after a while, for a test that is killed leaves them behind. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    int size = count > 1 ? atoi(words[1]) : 0, started = 0, is_full = 0;
    char buffer[16];

    signal(SIGTERM, SIG_IGN);
    alarm(120);
    while (started < size && !is_full) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGTERM, SIG_DFL);
            alarm(120);
            for (;;) pause();
        }
        if (child < 0) is_full = 1; else started++;
    }
    if (!is_full) {
        puts("ready");
        fflush(stdout);
        if (count > 2) pause();
        if (read(0, buffer, sizeof buffer) < 0) is_full = 1;
    }
    kill(0, SIGTERM);
    while (wait(0) > 0) continue;
    return is_full;
}
