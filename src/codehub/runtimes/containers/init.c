/* The first process of a workspace's containers where the platform may not enter them from outside (Kubernetes).

   It is linked statically and copied into the pod, so that any image will do. It starts the IDE, keeps its output in
   two files of bounded size, runs commands for the relay beside it, and says how the IDE ended in the container's
   termination message. With the first process of a container the kernel ends all others, and nothing inside can kill it.

     init FOLDER LOG_BYTES PROCESSES OPEN_FILES FILE_BYTES [COMMAND...]      (0 = no limit)

   FOLDER has `init.sock`, on which the relay asks, and the log: `current` and `previous`, as `shepherd.log_files` has
   it. Without a command it only runs what it is asked to, one command at a time, and whatever a command started ends
   with it: the kernel kills all that this process can see, which is all there is in its pid namespace.

   A request is one message: NUL-terminated texts (the folder, the number of words, the words, the environment), with
   two descriptors, standard input and output. Answers: "e CODE" when it has ended, "b" when another one is running.
   Further messages on the same connection: "k" kills the command. On a connection without a command: "t" asks the IDE
   to end, "k" ends it; where there is no IDE, either ends this process. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS = 64, MESSAGE = 192 << 10, WORDS = 4096, TAIL = 3600, PIECE = 65536 };

struct client {
    int fd;      /* -1: free */
    pid_t child; /* 0: no command */
};

static int folder, log_file = -1, log_pipe = -1;
static long long log_size, log_half, most_processes, most_open, most_bytes;
static pid_t ide;
static struct client clients[CLIENTS];
static char message[MESSAGE];

static void fail(const char *what)
{
    dprintf(2, "codehub-init: %s: %s\n", what, strerror(errno));
    _exit(70);
}

/* --- the log */

static void open_log(void)
{
    log_file = openat(folder, "current", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
    log_size = log_file < 0 ? 0 : lseek(log_file, 0, SEEK_END);
}

/* Never fails: on a full disk a line of log is worth less than the IDE that waits to write it. */
static void keep(const char *data, ssize_t size)
{
    if (log_size && log_size + size > log_half) {
        close(log_file);
        renameat(folder, "current", folder, "previous");
        open_log();
    }
    ssize_t written = write(log_file, data, size);
    if (written > 0)
        log_size += written;
}

/* What is there to be read of the IDE's output: more than a pipe holds, and not what comes for ever. */
static void drain(void)
{
    static char piece[PIECE];
    ssize_t size;
    long long most = log_half < PIECE ? log_half : PIECE;
    for (int turns = 0; turns < 16 && log_pipe >= 0 && (size = read(log_pipe, piece, most)) > 0; turns++)
        keep(piece, size);
}

static ssize_t tail_of(const char *name, char *into, ssize_t most)
{
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 || most <= 0)
        return 0;
    off_t size = lseek(file, 0, SEEK_END);
    ssize_t got = pread(file, into, most, size > most ? size - most : 0);
    close(file);
    return got < 0 ? 0 : got;
}

/* --- ending */

static int ran_out_of_memory(void)
{
    const char *names[] = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};
    for (int i = 0; i < 2; i++) {
        char line[128];
        long count = 0;
        FILE *file = fopen(names[i], "re");
        while (file && fgets(line, sizeof line, file))
            sscanf(line, "oom_kill %ld", &count);
        if (file)
            fclose(file);
        if (count > 0)
            return 1;
    }
    return 0;
}

/* The container ends with 0, whatever the IDE ended with: one that failed would be started again. */
static void end(int code)
{
    static const char memory[] =
        "\n[codehub] the memory limit was reached, and processes were ended because of it\n";
    static char older[TAIL], newer[TAIL];
    drain();
    if (code == 128 + SIGKILL && ran_out_of_memory())
        keep(memory, sizeof memory - 1);
    ssize_t of_newer = tail_of("current", newer, TAIL), of_older = tail_of("previous", older, TAIL - of_newer);
    int file = open("/dev/termination-log", O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (file >= 0) {
        dprintf(file, "%d\n", code);
        if (write(file, older, of_older) < 0 || write(file, newer, of_newer) < 0)
            _exit(0);
    }
    _exit(0);
}

/* --- commands */

static void limit(int which, long long most)
{
    struct rlimit both = {most, most};
    if (most)
        setrlimit(which, &both);
}

static pid_t start(char **words, char **environment, const char *where, int in, int out)
{
    pid_t child = fork();
    if (child)
        return child;
    sigset_t none;
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    umask(022);
    limit(RLIMIT_NOFILE, most_open);
    limit(RLIMIT_FSIZE, most_bytes);
    limit(RLIMIT_NPROC, most_processes);
    environ = environment;
    if (chdir(where) == 0)
        execvp(words[0], words);
    int found = errno != ENOENT;
    dprintf(2, "%s: %s\n", words[0], found ? strerror(errno) : "not found");
    _exit(found ? 126 : 127);
}

static void answer(struct client *client, const char *text)
{
    send(client->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void ended(pid_t child, int status)
{
    char text[32];
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (child == ide)
        end(code);
    for (struct client *client = clients; client < clients + CLIENTS; client++) {
        if (client->fd < 0 || client->child != child)
            continue;
        client->child = 0;
        if (!ide) { /* nothing of it is left before it is said to have ended */
            pid_t other;
            do
                kill(-1, SIGKILL);
            while ((other = waitpid(-1, NULL, 0)) > 0 || errno == EINTR);
        }
        snprintf(text, sizeof text, "e %d", code);
        answer(client, text);
    }
}

static void bury(void)
{
    int status;
    pid_t child;
    while ((child = waitpid(-1, &status, WNOHANG)) > 0)
        ended(child, status);
}

static void kill_command(struct client *client)
{
    if (client->child > 0)
        kill(ide ? -client->child : -1, SIGKILL);
}

static void forget(struct client *client)
{
    kill_command(client);
    close(client->fd);
    client->fd = -1;
    if (!ide && client->child > 0)
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
            kill(-1, SIGKILL);
    client->child = 0;
}

/* The container's own PATH, unless another is given. */
static void begin(struct client *client, ssize_t size, int in, int out)
{
    static char *words[WORDS + 1], *environment[WORDS + 2], path[PIECE];
    char *text = message, *last = message + size, *where = NULL;
    int count = -1, of_words = 0, of_environment = 0, has_path = 0;
    for (; text < last; text += strlen(text) + 1) {
        if (!where)
            where = text;
        else if (count < 0)
            count = atoi(text);
        else if (of_words < count && of_words < WORDS)
            words[of_words++] = text;
        else if (of_environment < WORDS) {
            has_path |= !strncmp(text, "PATH=", 5);
            environment[of_environment++] = text;
        }
    }
    snprintf(path, sizeof path, "PATH=%s", getenv("PATH"));
    if (!has_path)
        environment[of_environment++] = path;
    words[of_words] = environment[of_environment] = NULL;
    if (of_words && of_words == count)
        client->child = start(words, environment, where, in, out);
    if (client->child <= 0) {
        client->child = 0;
        answer(client, "e 126");
    }
}

static int is_busy(void)
{
    for (struct client *client = clients; client < clients + CLIENTS; client++)
        if (client->fd >= 0 && client->child > 0)
            return 1;
    return 0;
}

static void ask_to_end(int number)
{
    if (!ide)
        _exit(0);
    kill(number == SIGKILL ? -1 : ide, number);
}

static void hear(struct client *client)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec into = {message, MESSAGE - 1};
    struct msghdr wanted = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int fds[2] = {-1, -1};
    ssize_t size = recvmsg(client->fd, &wanted, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0) {
        forget(client);
        return;
    }
    message[size] = 0;
    struct cmsghdr *given = CMSG_FIRSTHDR(&wanted);
    if (given && given->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(given), given->cmsg_len < CMSG_LEN(sizeof fds) ? sizeof(int) : sizeof fds);
    if (size == 1 && message[0] == 'k' && client->child > 0)
        kill_command(client);
    else if (size == 1)
        ask_to_end(message[0] == 'k' ? SIGKILL : SIGTERM);
    else if (client->child > 0 || (!ide && is_busy()))
        answer(client, "b");
    else if (fds[1] >= 0)
        begin(client, size, fds[0], fds[1]);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void welcome(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (struct client *client = clients; fd >= 0 && client < clients + CLIENTS; client++)
        if (client->fd < 0) {
            *client = (struct client){fd, 0};
            return;
        }
    if (fd >= 0)
        close(fd);
}

/* --- the whole */

/* There under its name only when it listens: whoever finds it can connect. */
static int listening(const char *where)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char path[sizeof name.sun_path];
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(name.sun_path, sizeof name.sun_path, "%s/init.new", where);
    snprintf(path, sizeof path, "%s/init.sock", where);
    unlink(name.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) || listen(fd, CLIENTS) || rename(name.sun_path, path))
        fail(path);
    return fd;
}

static void add_own_programs(void)
{
    static char path[PIECE];
    const char *home = getenv("HOME"), *given = getenv("PATH");
    snprintf(path, sizeof path, "%s/.local/bin:%s", home ? home : "",
             given ? given : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    setenv("PATH", path, 1);
}

static void start_ide(char **words)
{
    int ends[2], nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const char *home = getenv("HOME");
    if (pipe2(ends, O_CLOEXEC) || fcntl(ends[0], F_SETFL, O_NONBLOCK))
        fail("pipe");
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 18);
    log_pipe = ends[0];
    ide = start(words, environ, home ? home : "/", nothing, ends[1]);
    if (ide < 0)
        fail("fork");
    close(ends[1]);
    close(nothing);
}

/* A container that was killed is started again; the IDE in it has ended. */
static void require_first(void)
{
    int mark = openat(folder, "started", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (mark < 0 && errno == EEXIST)
        end(128 + SIGKILL);
    close(mark);
}

int main(int count, char **words)
{
    sigset_t ours;
    if (count < 6 || getpid() != 1) /* elsewhere, what it kills would be others' */
        return 64;
    prctl(PR_SET_DUMPABLE, 0);
    folder = open(words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        fail(words[1]);
    log_half = atoll(words[2]) / 2;
    most_processes = atoll(words[3]), most_open = atoll(words[4]), most_bytes = atoll(words[5]);
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD), sigaddset(&ours, SIGTERM), sigaddset(&ours, SIGINT);
    sigprocmask(SIG_BLOCK, &ours, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    for (int i = 0; i < CLIENTS; i++)
        clients[i].fd = -1;
    add_own_programs();
    if (count > 6) {
        open_log();
        require_first();
    }
    int listener = listening(words[1]);
    if (count > 6)
        start_ide(words + 6);
    for (;;) {
        struct pollfd polled[CLIENTS + 3] = {{signals, POLLIN, 0}, {listener, POLLIN, 0}, {log_pipe, POLLIN, 0}};
        for (int i = 0; i < CLIENTS; i++)
            polled[i + 3] = (struct pollfd){clients[i].fd, POLLIN, 0};
        if (poll(polled, CLIENTS + 3, -1) < 0 && errno != EINTR)
            fail("poll");
        if (polled[2].revents) {
            drain();
            if (polled[2].revents & POLLHUP) { /* no process has it any more: the IDE is about to end, or closed it */
                close(log_pipe);
                log_pipe = -1;
            }
        }
        for (int i = 0; i < CLIENTS; i++)
            if (clients[i].fd >= 0 && polled[i + 3].fd == clients[i].fd && polled[i + 3].revents)
                hear(&clients[i]);
        if (polled[1].revents)
            welcome(listener);
        struct signalfd_siginfo told;
        while (read(signals, &told, sizeof told) == sizeof told)
            if (told.ssi_signo != SIGCHLD)
                ask_to_end(SIGTERM);
        bury();
    }
}
