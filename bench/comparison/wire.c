/* The two ends of a comparison: an engine that answers constants at once, and a load that is not the bottleneck.
 *
 *   wire engine PORT
 *   wire load PORT BODY_FILE HEADERS_FILE CONNECTIONS SECONDS [RATE]
 *
 * Each request has an id of its own, in a header and wherever the body has sixteen '@'. Without a rate every connection
 * asks again as soon as it has its answer. With one, requests are due at equal distances whatever the server does, and
 * their time counts from when they were due. The load ends when every request has its answer, and prints one line of JSON.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 18, EVENTS = 512, PATIENCE_S = 60, MARK_BYTES = 16 };
static const char MARK[] = "@@@@@@@@@@@@@@@@";

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

/* --- reading a message: a head, then a body by its length or in chunks ------------------------------------------- */

enum state { HEAD, LENGTH, CHUNK_SIZE, CHUNK, CHUNK_END, TRAILERS, DONE };

struct message {
  enum state state;
  size_t left;       /* of the body, or of a chunk */
  int status, keeps_alive, is_stream, is_models;
  long events;
  char *head;
  size_t head_bytes, head_room;
};

static void message_reset(struct message *m) {
  m->state = HEAD;
  m->head_bytes = m->left = 0;
  m->is_stream = m->is_models = 0;
  m->events = 50;
}

static const char *field(const char *head, const char *name) {
  for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
    if (!strncasecmp(line + 2, name, strlen(name)) && line[2 + strlen(name)] == ':') {
      line += 3 + strlen(name);
      return line + strspn(line, " \t");
    }
  return NULL;
}

static void read_head(struct message *m) {
  const char *length = field(m->head, "content-length"), *coding = field(m->head, "transfer-encoding");
  const char *connection = field(m->head, "connection");
  m->status = !strncmp(m->head, "HTTP/1.1 ", 9) ? atoi(m->head + 9) : 0;
  m->is_models = !strncmp(m->head, "GET /v1/models", 14);
  m->keeps_alive = !(connection && !strncasecmp(connection, "close", 5));
  m->left = length ? strtoul(length, NULL, 10) : 0;
  m->state = coding && !strncasecmp(coding, "chunked", 7) ? CHUNK_SIZE : m->left ? LENGTH : DONE;
}

static void add_head(struct message *m, const char *data, size_t size) {
  if (m->head_bytes + size + 1 > m->head_room) m->head = realloc(m->head, m->head_room = 2 * (m->head_bytes + size) + 4096);
  memcpy(m->head + m->head_bytes, data, size);
  m->head_bytes += size;
  m->head[m->head_bytes] = 0;
}

/* What is asked for stands at the beginning of a body or at its end, whoever wrote it anew. */
static void look_at_body(struct message *m, const char *data, size_t size) {
  enum { EDGE = 1024 };
  const char *found;
  if (size > 2 * EDGE) {
    look_at_body(m, data + size - EDGE, EDGE);
    size = EDGE;
  }
  if (memmem(data, size, "\"stream\":true", 13) || memmem(data, size, "\"stream\": true", 14)) m->is_stream = 1;
  if ((found = memmem(data, size, "\"max_tokens\":", 13))) m->events = atol(found + 13);
}

/* Returns how many bytes it took; stops when the message is done. */
static size_t take(struct message *m, const char *data, size_t size, int looks) {
  size_t at = 0;
  while (at < size && m->state != DONE) {
    const char *from = data + at, *line;
    size_t rest = size - at, part;
    switch (m->state) {
    case HEAD: {
      size_t before = m->head_bytes;
      add_head(m, from, rest);
      char *end = memmem(m->head, m->head_bytes, "\r\n\r\n", 4);
      if (!end) return size;
      part = end + 4 - m->head - before;
      end[2] = 0;
      at += part;
      read_head(m);
      if (m->status >= 100 && m->status < 200) message_reset(m);
      m->head_bytes = 0;
      break;
    }
    case LENGTH:
    case CHUNK:
      part = rest < m->left ? rest : m->left;
      if (looks) look_at_body(m, from, part);
      at += part;
      m->left -= part;
      if (!m->left) m->state = m->state == LENGTH ? DONE : CHUNK_END;
      break;
    case CHUNK_SIZE:
    case CHUNK_END:
    case TRAILERS: /* lines, which may be cut */
      line = memchr(from, '\n', rest);
      part = line ? (size_t)(line - from) + 1 : rest;
      add_head(m, from, part);
      at += part;
      if (!line) break;
      if (m->state == CHUNK_END) m->state = CHUNK_SIZE;
      else if (m->state == TRAILERS) m->state = m->head_bytes > 2 ? TRAILERS : DONE;
      else m->state = (m->left = strtoul(m->head, NULL, 16)) ? CHUNK : TRAILERS;
      m->head_bytes = 0;
      break;
    case DONE: break;
    }
  }
  return at;
}

/* --- what waits to be written -------------------------------------------------------------------------------------- */

struct out {
  const char *data;
  size_t size, at;
};

/* Whether all has gone. */
static int drain(int fd, struct out *out) {
  while (out->at < out->size) {
    ssize_t n = send(fd, out->data + out->at, out->size - out->at, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n < 0) return -1;
    out->at += n;
  }
  return 1;
}

static void watch(int poll, int fd, void *what, int is_new, int writes) {
  struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0), .data.ptr = what};
  if (epoll_ctl(poll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event)) fail("epoll_ctl");
}

static char buffer[READ_BYTES];

/* --- the engine ------------------------------------------------------------------------------------------------------ */

struct peer {
  int fd, waits;
  struct message in;
  struct out out;
};

static const char UNARY[] =
    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"bench\",\"choices\":[{\"index\":0,"
    "\"message\":{\"role\":\"assistant\",\"content\":\"ok\"},\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":1,\"total_tokens\":11}}";
static const char MODELS[] = "{\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\"}]}";
static struct out unary, models;

static struct out whole(const char *body) {
  char *made;
  int size = asprintf(&made, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s", strlen(body), body);
  return (struct out){made, size, 0};
}

static struct out streamed(long events) {
  static struct out made[2];
  static long counts[2];
  for (int i = 0; i < 2; i++) {
    if (counts[i] == events) return made[i];
    if (counts[i]) continue;
    char *all = malloc(512 + events * 320), *to = all;
    to += sprintf(to, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
    for (long n = 0; n <= events; n++) {
      char event[320];
      int size = n == events ? sprintf(event, "data: [DONE]\n\n")
                             : sprintf(event, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n",
                                       n + 1 == events ? "" : "\"content\":\"word \"", n + 1 == events ? "\"stop\"" : "null");
      to += sprintf(to, "%x\r\n%s\r\n", size, event);
    }
    to += sprintf(to, "0\r\n\r\n");
    counts[i] = events;
    return made[i] = (struct out){all, to - all, 0};
  }
  return unary;
}

static void part(int poll, struct peer *peer) {
  epoll_ctl(poll, EPOLL_CTL_DEL, peer->fd, NULL);
  close(peer->fd);
  free(peer->in.head);
  free(peer);
}

static void answer(int poll, struct peer *peer, int can_read) {
  for (;;) {
    int gone = drain(peer->fd, &peer->out);
    if (gone < 0) return part(poll, peer);
    if (peer->waits != !gone) watch(poll, peer->fd, peer, 0, peer->waits = !gone);
    if (!gone || !can_read) return;
    ssize_t n = recv(peer->fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return part(poll, peer);
    /* One request at a time: nobody here sends ahead. */
    take(&peer->in, buffer, n, 1);
    if (peer->in.state == DONE) {
      peer->out = peer->in.is_models ? models : peer->in.is_stream ? streamed(peer->in.events) : unary;
      message_reset(&peer->in);
    }
  }
}

static void engine(int port) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), poll = epoll_create1(0), one = 1;
  struct sockaddr_in where = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {0}};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (void *)&where, sizeof where) || listen(listener, 4096)) fail("listen");
  unary = whole(UNARY), models = whole(MODELS);
  watch(poll, listener, NULL, 1, 0);
  struct epoll_event events[EVENTS];
  for (;;) {
    int count = epoll_wait(poll, events, EVENTS, -1);
    for (int i = 0; i < count; i++) {
      if (events[i].data.ptr) {
        answer(poll, events[i].data.ptr, events[i].events & ~EPOLLOUT);
        continue;
      }
      int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
      if (fd < 0) continue;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      struct peer *peer = calloc(1, sizeof *peer);
      peer->fd = fd;
      message_reset(&peer->in);
      watch(poll, fd, peer, 1, 0);
    }
  }
}

/* --- the load -------------------------------------------------------------------------------------------------------- */

struct asker {
  int fd, is_busy, waits;
  double due, first;
  struct message in;
  struct out out;
  char *request;
};

struct load {
  int port, poll, connections;
  double rate, began, ends;
  char *request;
  size_t request_bytes, marks[8], mark_count;
  struct asker *askers;
  unsigned long sent, done, errors, room;
  float *times, *firsts;
};

static char *slurp(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) fail(path);
  char *data = NULL;
  size_t room = 0;
  *size = 0;
  do {
    data = realloc(data, room = 2 * room + 65536);
    *size += fread(data + *size, 1, room - *size - 1, file);
  } while (!feof(file));
  fclose(file);
  data[*size] = 0;
  return data;
}

static void prepare(struct load *load, const char *body_file, const char *headers_file) {
  size_t body_bytes, headers_bytes;
  char *body = slurp(body_file, &body_bytes), *headers = slurp(headers_file, &headers_bytes), *head;
  int head_bytes = asprintf(&head,
                            "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nuser-agent: comparison\r\naccept: */*\r\n"
                            "content-type: application/json\r\nx-request-id: %s\r\n%scontent-length: %zu\r\n\r\n",
                            load->port, MARK, headers, body_bytes);
  load->request_bytes = head_bytes + body_bytes;
  load->request = malloc(load->request_bytes);
  memcpy(load->request, head, head_bytes);
  memcpy(load->request + head_bytes, body, body_bytes);
  for (char *at = load->request; load->mark_count < 8 && (at = memmem(at, load->request + load->request_bytes - at, MARK, MARK_BYTES)); at += MARK_BYTES)
    load->marks[load->mark_count++] = at - load->request;
}

static void dial(struct load *load, struct asker *asker) {
  int one = 1, is_new = asker->fd < 0;
  if (!is_new) close(asker->fd);
  struct sockaddr_in where = {AF_INET, htons(load->port), {htonl(INADDR_LOOPBACK)}, {0}};
  asker->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (asker->fd < 0) fail("socket");
  for (int tries = 0; connect(asker->fd, (void *)&where, sizeof where); usleep(10000))
    if (++tries > 200) fail("connect");
  setsockopt(asker->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (fcntl(asker->fd, F_SETFL, O_NONBLOCK)) fail("fcntl");
  asker->waits = 0;
  message_reset(&asker->in);
  watch(load->poll, asker->fd, asker, 1, 0);
}

static void ask(struct load *load, struct asker *asker, double due) {
  char id[MARK_BYTES + 1];
  /* Spread over all digits, so that no two requests share more than their beginning. */
  snprintf(id, sizeof id, "%016lx", (load->sent++ + 1) * 0x9E3779B97F4A7C15ul);
  for (size_t i = 0; i < load->mark_count; i++) memcpy(asker->request + load->marks[i], id, MARK_BYTES);
  asker->is_busy = 1, asker->due = due, asker->first = 0;
  asker->out = (struct out){asker->request, load->request_bytes, 0};
  int gone = drain(asker->fd, &asker->out);
  if (asker->waits != (gone == 0)) watch(load->poll, asker->fd, asker, 0, asker->waits = gone == 0);
}

static void finished(struct load *load, struct asker *asker, int is_good) {
  if (!is_good) load->errors++;
  if (load->done == load->room) {
    load->room = 2 * load->room + 65536;
    load->times = realloc(load->times, load->room * sizeof *load->times);
    load->firsts = realloc(load->firsts, load->room * sizeof *load->firsts);
  }
  load->firsts[load->done] = asker->first - asker->due;
  load->times[load->done++] = now() - asker->due;
  asker->is_busy = 0;
}

static void hear(struct load *load, struct asker *asker, int can_read) {
  if (asker->waits) {
    int gone = drain(asker->fd, &asker->out);
    if (gone) watch(load->poll, asker->fd, asker, 0, asker->waits = 0);
  }
  while (can_read) {
    ssize_t n = recv(asker->fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      if (asker->is_busy) finished(load, asker, 0);
      dial(load, asker);
    } else if (asker->is_busy) {
      if (!asker->first) asker->first = now();
      take(&asker->in, buffer, n, 0);
      if (asker->in.state != DONE) continue;
      finished(load, asker, asker->in.status == 200);
      if (asker->in.keeps_alive) message_reset(&asker->in);
      else dial(load, asker);
    }
    if (!asker->is_busy && !load->rate && now() < load->ends) ask(load, asker, now());
    return;
  }
}

/* Ask what is due on the connections that are free. Returns how long to sleep, in ms. */
static int pace(struct load *load, struct asker **idle, int *idle_count) {
  double at = now();
  *idle_count = 0;
  for (int i = load->connections - 1; i >= 0; i--)
    if (!load->askers[i].is_busy) idle[(*idle_count)++] = &load->askers[i];
  for (;;) {
    double due = load->began + load->sent / load->rate;
    if (due >= load->ends) return 1;
    if (due > at) return (due - at) * 1e3 > 1 ? 1 : 0;
    if (!*idle_count) return 1;
    ask(load, idle[--*idle_count], due);
  }
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static double at_share(const float *sorted, unsigned long count, double share) {
  unsigned long at = share * count;
  return count ? 1e3 * sorted[at < count ? at : count - 1] : 0;
}

static void run(struct load *load, double seconds) {
  struct epoll_event events[EVENTS];
  struct asker **idle = malloc(load->connections * sizeof *idle);
  int idle_count;
  load->poll = epoll_create1(0);
  load->askers = calloc(load->connections, sizeof *load->askers);
  for (int i = 0; i < load->connections; i++) {
    load->askers[i].fd = -1;
    load->askers[i].request = malloc(load->request_bytes);
    memcpy(load->askers[i].request, load->request, load->request_bytes);
    dial(load, &load->askers[i]);
  }
  load->began = now(), load->ends = load->began + seconds;
  if (!load->rate)
    for (int i = 0; i < load->connections; i++) ask(load, &load->askers[i], now());
  while ((load->sent > load->done || now() < load->ends) && now() < load->ends + PATIENCE_S) {
    int sleep = load->rate ? pace(load, idle, &idle_count) : 100;
    int count = epoll_wait(load->poll, events, EVENTS, sleep);
    for (int i = 0; i < count; i++) hear(load, events[i].data.ptr, events[i].events & ~EPOLLOUT);
  }
  double took = now() - load->began;
  qsort(load->times, load->done, sizeof *load->times, by_value);
  qsort(load->firsts, load->done, sizeof *load->firsts, by_value);
  printf("{\"done\": %lu, \"errors\": %lu, \"unanswered\": %lu, \"seconds\": %.6f, \"p50\": %.4f, \"p99\": %.4f, \"p999\": %.4f, \"first_p50\": %.4f}\n",
         load->done, load->errors, load->sent - load->done, took, at_share(load->times, load->done, .5), at_share(load->times, load->done, .99),
         at_share(load->times, load->done, .999), at_share(load->firsts, load->done, .5));
}

int main(int count, char **given) {
  if (count == 3 && !strcmp(given[1], "engine")) engine(atoi(given[2]));
  if (count < 7 || strcmp(given[1], "load")) {
    fprintf(stderr, "usage: wire engine PORT | wire load PORT BODY_FILE HEADERS_FILE CONNECTIONS SECONDS [RATE]\n");
    return 2;
  }
  struct load load = {.port = atoi(given[2]), .connections = atoi(given[5]), .rate = count > 7 ? atof(given[7]) : 0};
  prepare(&load, given[3], given[4]);
  run(&load, atof(given[6]));
  return 0;
}
