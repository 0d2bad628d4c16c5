/* Load and backend of the proxy's benchmarks: one process, one epoll loop, so cheap that the proxy is what is measured.

   With the argument `shares` it sleeps while it waits for answers: what it measures has its core too. It prints the
   port that its backend listens on, then takes commands, one a line:

     run PORT CONNECTIONS MILLISECONDS RATE BODY MESSAGE FILE
     hold PORT CONNECTIONS 0 0 BODY MESSAGE FILE
     drop

   FILE has the head of the request, whose first `@@@@@@@@@@` becomes a running number; BODY bytes follow it. If it has
   several heads, they are sent in turn. With a MESSAGE above zero the request is a WebSocket handshake, and messages
   of that many bytes are echoed after it. There is one request or message under way per connection; with a RATE, so
   many begin a second. A connection that has been served rests until all have: a proxy that accepts one connection per
   round of its loop would otherwise be kept from the last ones by the first ones' requests. Then `run` says `ready`,
   and when it is over one line of JSON. `hold` says `ready` and keeps what it opened until `drop`. An answer that is not
   200 or 101, and an unexpected end, are errors and end the program.

   The backend answers `…/bytes/N` with N bytes, any other request with 4 when it has read all of it, and echoes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 8192, PIECE = 1 << 18, STEPS = 256, BUCKETS = 64 * STEPS };
enum kind { LISTENER, COMMANDS, CLIENT, SERVER };
enum state { CONNECTING, IN_HEAD, IN_BODY, IN_TUNNEL, RESTING };

struct end {
  int fd;
  enum kind kind;
  enum state state;
  bool tunnel, served, waits_for_room;
  char head[HEAD]; /* what is known of the head at hand */
  size_t have;
  uint64_t left; /* bytes of the body or frame still to come */
  const char *out;
  char own[160]; /* `out`, where it is not the request's head */
  size_t out_left;
  uint64_t fill_left; /* and after `out`, so many bytes of whatever */
  uint64_t begun;
};

static struct {
  char *requests;
  size_t size, at; /* of all of them, and where the next one begins */
  char *number;
  uint64_t body, message, rate, milliseconds, deadline, next, since;
  unsigned connections, served, busy, counter;
  bool running, told, over;
  uint64_t count, longest, delays[BUCKETS];
  struct end **ends;
} load;

static int poller;
static char piece[PIECE], filler[PIECE];

static void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "load: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  exit(1);
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct end *open_end(int fd, enum kind kind, uint32_t events) {
  struct end *end = calloc(1, sizeof *end);
  if (!end) die("no memory");
  end->fd = fd;
  end->kind = kind;
  end->state = IN_HEAD;
  struct epoll_event event = {.events = events, .data.ptr = end};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event)) die("epoll: %s", strerror(errno));
  return end;
}

static void close_end(struct end *end) {
  close(end->fd);
  free(end);
}

/* --- how long things took: in buckets that grow, none wider than a 128th of what is in it */

static unsigned bucket(uint64_t microseconds) {
  unsigned power = microseconds < STEPS ? 0 : 63 - (unsigned)__builtin_clzll(microseconds) - 7;
  return power * STEPS + (unsigned)(microseconds >> power);
}

static double quantile(double part) {
  uint64_t seen = 0, wanted = (uint64_t)(part * (double)load.count);
  for (unsigned b = 0; b < BUCKETS; b++)
    if ((seen += load.delays[b]) > wanted) return (double)((uint64_t)(b % STEPS) << (b / STEPS)) / 1000.0;
  return (double)load.longest / 1e6;
}

/* --- writing */

static void watch_room(struct end *end, bool wanted) {
  if (end->waits_for_room == wanted) return;
  end->waits_for_room = wanted;
  struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = end};
  epoll_ctl(poller, EPOLL_CTL_MOD, end->fd, &event);
}

static void push(struct end *end) {
  while (end->out_left || end->fill_left) {
    size_t fill = end->fill_left < PIECE ? end->fill_left : PIECE;
    struct iovec parts[2] = {{(void *)(uintptr_t)end->out, end->out_left}, {filler, fill}};
    ssize_t sent = writev(end->fd, parts, 2);
    if (sent < 0 && errno == EAGAIN) {
      watch_room(end, true);
      return;
    }
    if (sent < 0) {
      if (end->kind == CLIENT) die("cannot send: %s", strerror(errno));
      return; /* the reader will learn of the end */
    }
    size_t of_out = (size_t)sent < end->out_left ? (size_t)sent : end->out_left;
    end->out += of_out;
    end->out_left -= of_out;
    end->fill_left -= (uint64_t)sent - of_out;
  }
  watch_room(end, false);
}

static void say(struct end *end, const char *text, size_t size, uint64_t fill) {
  end->out = text;
  end->out_left = size;
  end->fill_left = fill;
  push(end);
}

static size_t frame_head(char *into, uint64_t size, bool masked) {
  size_t at = 2;
  into[0] = (char)0x82; /* a whole binary message */
  if (size < 126) {
    into[1] = (char)size;
  } else {
    into[1] = size < 65536 ? 126 : 127;
    for (int shift = size < 65536 ? 8 : 56; shift >= 0; shift -= 8) into[at++] = (char)(size >> shift);
  }
  if (masked) { /* by nothing: the payload stays as it is */
    into[1] |= (char)0x80;
    memset(into + at, 0, 4);
    at += 4;
  }
  return at;
}

/* --- the load's side */

static void ask(struct end *end, uint64_t begun) {
  end->begun = begun;
  load.busy++;
  if (end->tunnel) {
    size_t size = frame_head(end->own, load.message, true);
    end->left = load.message + frame_head(end->head, load.message, false);
    end->state = IN_TUNNEL;
    say(end, end->own, size, load.message);
    return;
  }
  if (load.number) {
    char digits[11];
    snprintf(digits, sizeof digits, "%010u", load.counter++);
    memcpy(load.number, digits, 10);
  }
  end->state = IN_HEAD;
  end->have = 0;
  char *head = load.requests + load.at;
  size_t size = (size_t)((char *)memmem(head, load.size - load.at, "\r\n\r\n", 4) - head) + 4;
  load.at = load.at + size < load.size ? load.at + size : 0;
  say(end, head, size, load.body);
  if (load.number && end->out_left) die("a request's head did not find room");
}

static void ask_if_it_is_time(struct end *end, uint64_t at) {
  end->state = RESTING;
  if (!load.running || load.over || !load.told) return;
  if (!load.rate) {
    ask(end, at);
  } else if (load.next <= at) { /* whoever could not begin in time has waited since then */
    uint64_t due = load.next;
    load.next += 1000000000u / load.rate;
    ask(end, at - due > 2000000u ? due : at);
  }
}

static void answered(struct end *end) {
  uint64_t at = now(), took = at - end->begun;
  load.busy--;
  if (!end->served) {
    end->served = true;
    load.served++;
  } else if (load.since) {
    load.count++;
    load.delays[bucket(took / 1000)]++;
    if (took > load.longest) load.longest = took;
  }
  ask_if_it_is_time(end, at);
}

static const char *field(const char *head, const char *name) {
  const char *found = strcasestr(head, name);
  return found ? found + strlen(name) : NULL;
}

/* Returns how many of the bytes are the head's; 0 when it is not complete. */
static size_t read_head(struct end *end, const char *data, size_t size) {
  size_t before = end->have, room = HEAD - 1 - before;
  size_t taken = size < room ? size : room;
  memcpy(end->head + before, data, taken);
  end->have += taken;
  end->head[end->have] = 0;
  char *close = memmem(end->head, end->have, "\r\n\r\n", 4);
  if (!close) {
    if (taken < size) die("a head is too long");
    return 0;
  }
  size_t length = (size_t)(close - end->head) + 4;
  end->head[length] = 0;
  end->have = 0;
  return length - before;
}

static void client_read(struct end *end, const char *data, size_t size) {
  while (size) {
    if (end->state == RESTING) die("an answer that nobody asked for");
    if (end->state == IN_HEAD) {
      size_t taken = read_head(end, data, size);
      if (!taken) return;
      data += taken, size -= taken;
      int status = atoi(end->head + 9);
      if (status != (load.message ? 101 : 200)) die("an answer of status %d", status);
      const char *length = field(end->head, "\r\nContent-Length:");
      if (!length && !load.message) die("an answer without a length");
      end->left = length ? strtoull(length, NULL, 10) : 0;
      end->tunnel = load.message > 0;
      end->state = IN_BODY;
    }
    size_t taken = size < end->left ? size : end->left;
    data += taken, size -= taken, end->left -= taken;
    if (!end->left) answered(end);
  }
}

static void connect_one(unsigned place, int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (fd < 0) die("no more sockets: %s", strerror(errno));
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) die("connect: %s", strerror(errno));
  struct end *end = load.ends[place] = open_end(fd, CLIENT, EPOLLIN | EPOLLOUT);
  end->state = CONNECTING;
  end->waits_for_room = true;
}

static void client_ready(struct end *end) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(end->fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error) die("connect: %s", strerror(error));
  watch_room(end, false);
  ask(end, now());
}

static void drop(void) {
  for (unsigned i = 0; i < load.connections; i++) close_end(load.ends[i]);
  free(load.ends);
  free(load.requests);
  memset(&load, 0, sizeof load);
}

static void report(void) {
  double seconds = (double)(now() - load.since) / 1e9;
  printf("{\"count\": %lu, \"seconds\": %.6f, \"p50\": %.4f, \"p99\": %.4f, \"longest\": %.4f}\n",
         (unsigned long)load.count, seconds, quantile(0.5), quantile(0.99), (double)load.longest / 1e6);
  fflush(stdout);
  drop();
}

static void tick(void) {
  uint64_t at = now();
  if (load.served < load.connections) return;
  bool begins = !load.told;
  if (begins) {
    load.told = true;
    puts("ready");
    fflush(stdout);
    load.since = load.next = at;
    load.deadline = at + load.milliseconds * 1000000u;
  }
  if (!load.running) return;
  for (unsigned i = 0; (begins || load.rate) && i < load.connections && load.next <= at; i++)
    if (load.ends[i]->state == RESTING) ask_if_it_is_time(load.ends[i], at);
  if (at >= load.deadline) load.over = true;
  if (load.over && !load.busy) report();
}

/* --- the backend's side */

static void server_answer(struct end *end) {
  uint64_t bytes = 4;
  const char *wanted = strstr(end->head, "/bytes/");
  if (wanted && wanted < strstr(end->head, "\r\n")) bytes = strtoull(wanted + 7, NULL, 10);
  int size = snprintf(end->own, sizeof end->own,
                      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %lu\r\n\r\n", (unsigned long)bytes);
  end->state = IN_HEAD;
  say(end, end->own, (size_t)size, bytes);
}

static void server_begin(struct end *end) {
  static const char switching[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
  if (field(end->head, "\r\nUpgrade: websocket")) {
    end->tunnel = true;
    end->state = IN_TUNNEL;
    say(end, switching, sizeof switching - 1, 0);
    return;
  }
  const char *length = field(end->head, "\r\nContent-Length:");
  end->left = length ? strtoull(length, NULL, 10) : 0;
  end->state = IN_BODY;
}

/* One message at a time comes, so its echo may go out with its last byte. */
static size_t server_frame(struct end *end, const char *data, size_t size) {
  size_t taken = 0;
  while (!end->left) {
    if (taken == size) return taken;
    end->head[end->have++] = data[taken++];
    if (end->have < 2) continue;
    unsigned length = (unsigned char)end->head[1] & 0x7f;
    size_t extended = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (end->have < 2 + extended + 4) continue; /* whatever comes from here is masked */
    end->left = extended ? 0 : length;
    for (size_t i = 2; i < 2 + extended; i++) end->left = end->left << 8 | (unsigned char)end->head[i];
    end->begun = end->left; /* the size to send back */
    end->have = 0;
  }
  size_t of_payload = size - taken < end->left ? size - taken : end->left;
  end->left -= of_payload;
  if (!end->left) say(end, end->own, frame_head(end->own, end->begun, false), end->begun);
  return taken + of_payload;
}

static void server_read(struct end *end, const char *data, size_t size) {
  while (size) {
    size_t taken;
    if (end->state == IN_TUNNEL) {
      taken = server_frame(end, data, size);
    } else if (end->state == IN_HEAD) {
      taken = read_head(end, data, size);
      if (!taken) return;
      server_begin(end);
    } else {
      taken = size < end->left ? size : end->left;
      end->left -= taken;
    }
    data += taken, size -= taken;
    if (end->state == IN_BODY && !end->left) server_answer(end);
  }
}

static void accept_all(int listener) {
  int fd, one = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    open_end(fd, SERVER, EPOLLIN);
  }
  if (errno != EAGAIN) die("accept: %s", strerror(errno));
}

/* --- commands and the loop */

static void obey(char *line) {
  char word[8], path[4096];
  int port;
  unsigned connections;
  unsigned long milliseconds, rate, body, message;
  if (!strncmp(line, "drop", 4)) {
    drop();
    return;
  }
  if (sscanf(line, "%7s %d %u %lu %lu %lu %lu %4095s", word, &port, &connections, &milliseconds, &rate, &body, &message,
             path) != 8)
    die("not a command: %s", line);
  FILE *file = fopen(path, "rb");
  if (!file) die("%s: %s", path, strerror(errno));
  fseek(file, 0, SEEK_END);
  load.size = (size_t)ftell(file);
  rewind(file);
  load.requests = malloc(load.size);
  if (!load.requests || fread(load.requests, 1, load.size, file) != load.size) die("%s: cannot be read", path);
  fclose(file);
  if (load.size < 4 || memcmp(load.requests + load.size - 4, "\r\n\r\n", 4)) die("%s does not end with a head", path);
  load.number = memmem(load.requests, load.size, "@@@@@@@@@@", 10);
  load.body = body, load.message = message, load.rate = rate, load.milliseconds = milliseconds;
  load.connections = connections;
  load.ends = calloc(connections, sizeof *load.ends);
  load.running = !strcmp(word, "run");
  for (unsigned i = 0; i < connections; i++) connect_one(i, port);
}

static void handle(struct end *end, uint32_t events) {
  if (end->kind == CLIENT && end->state == CONNECTING) {
    client_ready(end);
    return;
  }
  if (events & EPOLLOUT) push(end);
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  ssize_t got = recv(end->fd, piece, PIECE, 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) {
    if (end->kind == CLIENT) die("a connection ended");
    close_end(end);
  } else if (end->kind == CLIENT) {
    client_read(end, piece, (size_t)got);
  } else {
    server_read(end, piece, (size_t)got);
  }
}

static int listen_somewhere(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in at = {.sin_family = AF_INET};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (bind(fd, (struct sockaddr *)&at, size) || listen(fd, 4096)) die("listen: %s", strerror(errno));
  getsockname(fd, (struct sockaddr *)&at, &size);
  printf("%d\n", ntohs(at.sin_port));
  fflush(stdout);
  return fd;
}

int main(int count_arguments, char **arguments) {
  bool shares = count_arguments > 1 && !strcmp(arguments[1], "shares");
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  memset(filler, 'x', PIECE);
  setvbuf(stdin, NULL, _IONBF, 0); /* a second command must not hide in a buffer */
  poller = epoll_create1(0);
  int listener = listen_somewhere();
  open_end(listener, LISTENER, EPOLLIN);
  open_end(0, COMMANDS, EPOLLIN);
  for (;;) {
    struct epoll_event events[256];
    /* While it runs flat out on a core of its own it does not sleep: waking up would be measured too. */
    int count = epoll_wait(poller, events, 256, !load.running ? -1 : load.rate || shares ? 1 : 0);
    for (int i = 0; i < count; i++) {
      struct end *end = events[i].data.ptr;
      if (end->kind == COMMANDS) {
        char line[8192];
        if (!fgets(line, sizeof line, stdin)) return 0;
        obey(line);
        break; /* what happened besides is told again; some of it may be gone */
      }
      end->kind == LISTENER ? accept_all(end->fd) : handle(end, events[i].events);
    }
    if (load.connections) tick();
  }
}
