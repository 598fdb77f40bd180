/*
 * The first process of a sandbox: starts commands, carries their bytes, and ends everything when the
 * service's end of its socket closes, however the service died.
 *
 * It has no libc, so that it runs in any image. Memory is static: nothing the payload does makes it grow. One
 * thread, one poll loop, and no call in it that can block: a command that floods, hangs or never reads costs
 * the others nothing.
 *
 * Frames on descriptor 3, both ways, little endian: u32 length of the payload, u8 type, u32 stream, payload.
 * A stream is one process started by SPAWN. Each direction of a stream has a window of bytes which its
 * reader renews with CREDIT, so that a slow reader stops one stream and not the socket.
 */
#include "system.h"

enum { READ = 0, WRITE = 1, OPEN = 2, CLOSE = 3, FSTAT = 5, POLL = 7, SIGACTION = 13, SIGPROCMASK = 14,
  IOCTL = 16, GETPID = 39, SENDTO = 44, RECVFROM = 45, FORK = 57, EXECVE = 59, WAIT4 = 61, KILL = 62,
  FCNTL = 72, CHDIR = 80, MKDIR = 83, FCHMOD = 91, UMASK = 95, SETSID = 112, CAPSET = 126, SETPRIORITY = 141, PRCTL = 157,
  MOUNT = 165, EXIT_GROUP = 231, SIGNALFD4 = 289, DUP3 = 292, PIPE2 = 293, PRLIMIT64 = 302, WAITID = 247, SECCOMP = 317,
  CLOSE_RANGE = 436, LANDLOCK_CREATE = 444, LANDLOCK_RESTRICT = 446 };
enum { EPERM = 1, ENOENT = 2, EIO = 5, E2BIG = 7, EAGAIN = 11, ENOMEM = 12, EACCES = 13, EEXIST = 17, ENOTDIR = 20, EISDIR = 21,
  EINVAL = 22, EFBIG = 27, ENOSYS = 38 };
enum { O_RDWR = 2, O_CREAT = 0100, O_NOCTTY = 0400, O_TRUNC = 01000, O_APPEND = 02000, O_NONBLOCK = 04000, O_CLOEXEC = 02000000 };
enum { POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16 };

/* Message types; `frames.ts` has the same numbers. */
enum { SPAWN = 1, DATA = 2, END_OF_INPUT = 3, SIGNAL = 4, TTY_RESET = 5, CREDIT = 6, PING = 7,
  READY = 16, STARTED = 17, FAILED = 18, STDOUT = 19, STDERR = 20, EXITED = 21, CONSUMED = 22, PONG = 23 };
enum { NULL_STDIO = 0, PIPES = 1, TERMINAL = 2, READ_FILE = 3, WRITE_FILE = 4, READ_TREE = 5, WRITE_TREE = 6, LOGGED = 7 };
enum { LEADER_GROUP = 0, FOREGROUND = 1, FOREGROUND_BUT_LEADER = 2 };

enum { CONTROL = 3, HEADER = 9, STREAMS = 64, INPUT_WINDOW = 65536, CHUNK = 16384, RESERVE = 4096,
  FRAME_MAX = 262144, OUT_MAX = 196608, ARGS_MAX = 1024, VERSION = 1,
  /* What one command may still have in its pipes when it ends; a grandchild that floods gets no more. */
  DRAIN_MAX = 1048576,
  /* Hundreds of busy processes must not keep the service from its work, nor this program. */
  NICE = 10,
  /* What a terminal prints waits for more this long, of the loop's rounds this many, and up to this many bytes. */
  HOLD_MS = 1, HOLD_ROUNDS = 16, HOLD_BYTES = 4096 };

struct stream {
  u32 id;
  int used, kind, pid;
  int input, output, error, status; /* our ends; -1 when closed. A terminal has input == output */
  int started, failed, exited, code, input_ended, quiet;
  u32 drained, consumed, head, tail;
  u64 credit;
  u8 buffer[INPUT_WINDOW];
};
struct pollfd { int fd; short events, revents; };

static struct stream streams[STREAMS];
static u8 in[FRAME_MAX + HEADER], out[OUT_MAX], scratch[65536];
static u32 in_length, out_head, out_tail;
static int urgent; /* Something in `out` is not to wait for more. */
static char *arguments[ARGS_MAX + 1], *environment[ARGS_MAX + 1];
static int self, signal_fd, mappings_fd = -1;

static void close_fd(int *fd) {
  if (*fd >= 0) sys(CLOSE, *fd, 0, 0, 0);
  *fd = -1;
}

static u32 get32(const u8 *p) { return p[0] | p[1] << 8 | p[2] << 16 | (u32)p[3] << 24; }
static void put32(u8 *p, u32 v) { p[0] = v; p[1] = v >> 8; p[2] = v >> 16; p[3] = v >> 24; }

/* ---- the end ---- */

/* Without a PID namespace (the host driver) our exit ends nobody else. As subreaper we inherit whoever
   loses its parent, so that killing our children again and again reaches all that they started. */
static void kill_descendants(void) {
  for (int round = 0; round < 400; round++) {
    int fd = sys(OPEN, "/proc/thread-self/children", O_CLOEXEC, 0, 0);
    long n = fd < 0 ? 0 : sys(READ, fd, scratch, sizeof scratch, 0);
    close_fd(&fd);
    for (long i = 0, pid = 0; i < n; i++) {
      if (scratch[i] >= '0' && scratch[i] <= '9') pid = pid * 10 + scratch[i] - '0';
      else if (pid) sys(KILL, pid, 9, 0, 0), pid = 0;
    }
    while (sys(WAIT4, -1, 0, 1, 0) > 0) {}
    if (n <= 0) return;
    sys(POLL, 0, 0, 5, 0);
  }
}

static void end(int code) {
  if (self != 1) kill_descendants();
  sys(EXIT_GROUP, code, 0, 0, 0);
}

/* ---- frames out ---- */

static u32 room(void) {
  if (out_head == out_tail) out_head = out_tail = 0;
  if (out_head > OUT_MAX / 2) {
    memcpy(out, out + out_head, out_tail - out_head);
    out_tail -= out_head;
    out_head = 0;
  }
  return OUT_MAX - out_tail;
}

static void header(u32 type, u32 id, u32 length) {
  put32(out + out_tail, length);
  out[out_tail + 4] = type;
  put32(out + out_tail + 5, id);
  out_tail += HEADER + length;
  urgent = 1;
}

/* A frame of up to two numbers. The callers leave RESERVE bytes free, so that these always fit. */
static void send_numbers(u32 type, u32 id, int count, u32 a, u32 b) {
  u8 *payload = out + out_tail + HEADER;
  if (count > 0) put32(payload, a);
  if (count > 1) put32(payload + 4, b);
  header(type, id, count * 4);
}

static void flush(void) {
  urgent = 1;
  while (out_head < out_tail) {
    long n = syscall6(SENDTO, CONTROL, (long)(out + out_head), out_tail - out_head, 0x4040, 0, 0);
    if (n == -EAGAIN) return;
    if (n <= 0) end(0);
    out_head += n;
  }
  urgent = 0;
}

/* ---- the child's side of a start: nothing here returns ---- */

static void fail(int error) {
  u8 message[4];
  put32(message, error < 0 ? -error : error);
  sys(WRITE, 3, message, 4, 0);
  sys(EXIT_GROUP, 127, 0, 0, 0);
}

static void execute(void) {
  char *name = arguments[0], *path = "/usr/bin:/bin";
  int slash = 0, error = ENOENT;
  for (char *c = name; *c; c++) slash |= *c == '/';
  if (slash) fail(sys(EXECVE, name, arguments, environment, 0));
  for (char **e = environment; *e; e++)
    if ((*e)[0] == 'P' && (*e)[1] == 'A' && (*e)[2] == 'T' && (*e)[3] == 'H' && (*e)[4] == '=') path = *e + 5;
  while (*name) {
    u8 *to = scratch;
    while (*path && *path != ':' && to < scratch + 4096) *to++ = *path++;
    *to++ = '/';
    for (char *c = name; *c && to < scratch + 8192; c++) *to++ = *c;
    *to = 0;
    long result = sys(EXECVE, scratch, arguments, environment, 0);
    if (result == -EACCES) error = EACCES;
    else if (result != -ENOENT && result != -ENOTDIR) fail(result);
    if (!*path++) break;
  }
  fail(error);
}

static void make_parents(char *path) {
  for (char *c = path + 1; *path && *c; c++)
    if (*c == '/') { *c = 0; sys(MKDIR, path, 0777, 0, 0); *c = '/'; }
}

/* Reads or writes one file as this process, so that a fifo or a dead mount hangs it and not the loop. */
static void copy_file(int kind, u64 argument) {
  char *path = arguments[0];
  long stat[18], left, n, sum = 0;
  if (kind == WRITE_FILE) make_parents(path);
  /* O_NONBLOCK: opening a fifo must not wait for its other end. */
  int flags = O_NOCTTY | O_NONBLOCK | O_CLOEXEC | (kind == WRITE_FILE ? O_CREAT | O_TRUNC | WRITE : 0);
  int fd = sys(OPEN, path, flags, 0600, 0);
  if (fd < 0) fail(fd);
  sys(FSTAT, fd, stat, 0, 0);
  if (((u32)stat[3] & 0170000) == 0040000) fail(EISDIR);
  if (((u32)stat[3] & 0170000) != 0100000) fail(EINVAL);
  if (kind == READ_FILE && (u64)stat[6] > argument) fail(EFBIG);
  if (kind == WRITE_FILE) sys(FCHMOD, fd, argument & 07777, 0, 0);
  sys(CLOSE, 3, 0, 0, 0); /* Tells PID 1 that the file is open. */
  int from = kind == READ_FILE ? fd : 0, to = kind == READ_FILE ? 1 : fd;
  while ((n = sys(READ, from, scratch, sizeof scratch, 0)) > 0) {
    if (kind == READ_FILE && (u64)(sum += n) > argument) sys(EXIT_GROUP, EFBIG, 0, 0, 0);
    for (left = 0; left < n;) {
      long written = sys(WRITE, to, scratch + left, n - left, 0);
      if (written < 0) sys(EXIT_GROUP, -written, 0, 0, 0);
      left += written;
    }
  }
  sys(EXIT_GROUP, -n, 0, 0, 0);
}

#include "supervisor-tree.c"

/* Both streams to one file, whose name stands before the command's own. */
static void open_log(void) {
  make_parents(arguments[0]);
  int fd = sys(OPEN, arguments[0], O_CREAT | O_TRUNC | O_APPEND | O_NOCTTY | O_NONBLOCK | WRITE, 0644, 0);
  if (fd < 0) fail(fd);
  sys(FCNTL, fd, 4 /* F_SETFL */, O_APPEND, 0);
  sys(DUP3, fd, 1, 0, 0);
  sys(DUP3, fd, 2, 0, 0);
  sys(CLOSE, fd, 0, 0, 0);
  for (char **a = arguments; *a; a++) a[0] = a[1];
  if (!arguments[0]) fail(EINVAL);
}

static void become(int kind, u64 argument, const char *cwd, const int stdio[3], int status) {
  u64 no_signals = 0, ignore[4] = { 1, 0, 0, 0 };
  sys(SETSID, 0, 0, 0, 0);
  sys(SETPRIORITY, 0, 0, NICE, 0);
  for (int i = 0; i < 3; i++) sys(DUP3, stdio[i], i, 0, 0);
  if (status == 3) sys(FCNTL, 3, 2, 1, 0);
  else sys(DUP3, status, 3, O_CLOEXEC, 0); /* Also closes our copy of the control socket. */
  if (sys(CLOSE_RANGE, 4, ~0u, 0, 0) < 0)
    for (int i = 4; i < 4096; i++) sys(CLOSE, i, 0, 0, 0);
  if (kind == TERMINAL) sys(IOCTL, 0, 0x540e /* TIOCSCTTY */, 0, 0);
  sys(SIGPROCMASK, 2, &no_signals, 0, 8);
  sys(UMASK, 022, 0, 0, 0);
  if (*cwd) {
    long error = sys(CHDIR, cwd, 0, 0, 0);
    if (error < 0) fail(error);
  }
  /* A file that grows too large is an error to be told, and no signal. */
  if (kind >= READ_FILE && kind <= WRITE_TREE) sys(SIGACTION, 25 /* SIGXFSZ */, ignore, 0, 8);
  if (kind == READ_FILE || kind == WRITE_FILE) copy_file(kind, argument);
  if (kind == READ_TREE || kind == WRITE_TREE) copy_tree(kind);
  if (kind == LOGGED) open_log();
  execute();
}

/* ---- starting a stream ---- */

/* The modes that every command finds, whatever the one before did to them: lines, signals, no echo. */
static void reset_terminal(int master) {
  struct { u32 iflag, oflag, cflag, lflag; u8 line, control[19]; } modes;
  memset(&modes, 0, sizeof modes);
  modes.iflag = 0040400; /* ICRNL | IUTF8 */
  modes.cflag = 0000277; /* B38400 | CS8 | CREAD */
  modes.lflag = 0000003; /* ISIG | ICANON */
  modes.control[0] = 3; modes.control[1] = 28; modes.control[2] = 127; modes.control[3] = 21;
  modes.control[4] = 4; modes.control[6] = 1; modes.control[10] = 26;
  sys(IOCTL, master, 0x5402 /* TCSETS */, &modes, 0);
  sys(IOCTL, master, 0x540b /* TCFLSH */, 1, 0); /* What we wrote and nobody has read. */
}

static int open_terminal(int *master, int *slave) {
  int unlock = 0;
  u16 size[4] = { 50, 200, 0, 0 };
  *master = sys(OPEN, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK, 0, 0);
  if (*master < 0) return *master;
  sys(IOCTL, *master, 0x40045431 /* TIOCSPTLCK */, &unlock, 0);
  *slave = sys(IOCTL, *master, 0x5441 /* TIOCGPTPEER */, O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
  if (*slave < 0) return *slave;
  sys(IOCTL, *master, 0x5414 /* TIOCSWINSZ */, size, 0);
  reset_terminal(*master);
  return 0;
}

/* Ours does not block; the child's must, since programs expect that. */
static int open_pipe(int *ours, int *theirs, int ours_is_writer) {
  int fds[2];
  long error = sys(PIPE2, fds, O_CLOEXEC, 0, 0);
  if (error < 0) return error;
  *ours = fds[ours_is_writer];
  *theirs = fds[!ours_is_writer];
  sys(FCNTL, *ours, 4, O_NONBLOCK | ours_is_writer, 0);
  return 0;
}

static struct stream *find(u32 id) {
  for (int i = 0; i < STREAMS; i++)
    if (streams[i].used && streams[i].id == id) return &streams[i];
  return 0;
}

static struct stream *claim(u32 id) {
  for (int i = 0; i < STREAMS; i++) {
    struct stream *s = &streams[i];
    if (s->used) continue;
    memset(s, 0, sizeof *s - sizeof s->buffer); /* The buffer stays untouched, hence unmapped. */
    s->id = id;
    s->used = 1;
    s->input = s->output = s->error = s->status = -1;
    return s;
  }
  return 0;
}

static void release(struct stream *s) {
  if (s->kind == TERMINAL) s->input = -1;
  close_fd(&s->input);
  close_fd(&s->output);
  close_fd(&s->error);
  close_fd(&s->status);
  s->used = 0;
}

static int open_stdio(struct stream *s, int theirs[3]) {
  int error = 0, null = 0;
  if (s->kind == TERMINAL) {
    error = open_terminal(&s->output, &theirs[0]);
    s->input = s->output;
    theirs[1] = theirs[2] = theirs[0];
    return error;
  }
  if (s->kind != PIPES) null = sys(OPEN, "/dev/null", O_RDWR | O_CLOEXEC, 0, 0);
  if (null < 0) return null;
  theirs[0] = theirs[1] = theirs[2] = null;
  int writes = s->kind == PIPES || s->kind == READ_FILE || s->kind == READ_TREE || s->kind == WRITE_TREE;
  if (s->kind == PIPES || s->kind == WRITE_FILE || s->kind == WRITE_TREE) error = open_pipe(&s->input, &theirs[0], 1);
  if (!error && writes) error = open_pipe(&s->output, &theirs[1], 0);
  if (!error && s->kind == PIPES) error = open_pipe(&s->error, &theirs[2], 0);
  return error;
}

/* Splits the strings of a SPAWN: cwd, arguments, environment, each with its closing zero. */
static int split(char *text, char *stop, u32 argc, u32 envc) {
  if (!argc || argc > ARGS_MAX || envc > ARGS_MAX || text >= stop || stop[-1]) return -E2BIG;
  for (u32 i = 0; i <= argc + envc; i++) {
    if (text >= stop) return -EINVAL;
    if (i) *(i <= argc ? &arguments[i - 1] : &environment[i - 1 - argc]) = text;
    while (*text++) {}
  }
  arguments[argc] = environment[envc] = 0;
  return 0;
}

/* Payload: u8 kind, u32 window, u64 argument, u16 argc, u16 envc, strings. */
static void spawn(u32 id, u8 *payload, u32 length) {
  int theirs[3] = { -1, -1, -1 }, status = -1, error = find(id) ? -EEXIST : length < 18 ? -EINVAL : 0;
  struct stream *s = error ? 0 : claim(id);
  if (!error && !s) error = -EAGAIN;
  if (!error) error = split((char *)payload + 17, (char *)payload + length, payload[13] | payload[14] << 8,
    payload[15] | payload[16] << 8);
  if (!error) {
    s->kind = payload[0];
    s->credit = get32(payload + 1);
    error = open_stdio(s, theirs);
  }
  if (!error) error = open_pipe(&s->status, &status, 0);
  if (!error) error = s->pid = sys(FORK, 0, 0, 0, 0);
  if (!error) become(s->kind, get32(payload + 5) | (u64)get32(payload + 9) << 32, (char *)payload + 17, theirs, status);
  if (theirs[1] == theirs[0]) theirs[1] = -1;
  if (theirs[2] == theirs[0] || theirs[2] == theirs[1]) theirs[2] = -1;
  for (int i = 0; i < 3; i++) close_fd(&theirs[i]);
  close_fd(&status);
  if (error >= 0) return;
  if (s) release(s);
  send_numbers(FAILED, id, 1, -error, 0);
}

/* ---- frames in ---- */

static void signal_stream(struct stream *s, u32 number, u32 scope) {
  int group = s->pid;
  if (s->exited) return; /* Its number may belong to somebody else by now. */
  if (scope != LEADER_GROUP && sys(IOCTL, s->output, 0x540f /* TIOCGPGRP */, &group, 0) < 0) return;
  if (scope == FOREGROUND_BUT_LEADER && group == s->pid) return;
  if (group <= 1) return;
  /* Just after its start it has no group yet, and nobody but itself to signal. */
  if (sys(KILL, -group, number, 0, 0) < 0 && group == s->pid) sys(KILL, group, number, 0, 0);
}

static void take_input(struct stream *s, u8 *bytes, u32 length) {
  if (s->input < 0) { s->consumed += length; return; }
  if (s->head && s->tail + length > INPUT_WINDOW) {
    memcpy(s->buffer, s->buffer + s->head, s->tail - s->head);
    s->tail -= s->head;
    s->head = 0;
  }
  if (s->tail + length > INPUT_WINDOW) end(3); /* The service broke the window: a bug in it. */
  memcpy(s->buffer + s->tail, bytes, length);
  s->tail += length;
}

static void obey(u32 type, u32 id, u8 *payload, u32 length) {
  struct stream *s = find(id);
  if (type == SPAWN) spawn(id, payload, length);
  else if (type == PING) send_numbers(PONG, id, 0, 0, 0);
  else if (!s) return; /* It ended while the message was on its way. */
  else if (type == DATA) take_input(s, payload, length);
  else if (type == END_OF_INPUT) s->input_ended = 1;
  else if (type == SIGNAL && length >= 8) signal_stream(s, get32(payload), get32(payload + 4));
  else if (type == TTY_RESET && s->kind == TERMINAL) 
    s->consumed += s->tail - s->head, s->head = s->tail = 0, reset_terminal(s->output);
  else if (type == CREDIT && length >= 4) s->credit += get32(payload);
}

static void receive(void) {
  long n = syscall6(RECVFROM, CONTROL, (long)(in + in_length), sizeof in - in_length, 0x40, 0, 0);
  if (n == 0 || (n < 0 && n != -EAGAIN)) end(0);
  if (n > 0) in_length += n;
}

static void obey_all(void) {
  u32 at = 0;
  while (in_length - at >= HEADER && room() >= RESERVE / 2) {
    u32 length = get32(in + at);
    if (length > FRAME_MAX) end(3);
    if (in_length - at < HEADER + length) break;
    obey(in[at + 4], get32(in + at + 5), in + at + HEADER, length);
    at += HEADER + length;
  }
  if (at) memcpy(in, in + at, in_length - at);
  in_length -= at;
}

/* ---- streams ---- */

/* Who ends a batch job (Slurm) signals every process of it, the payload's too. What dies of that has not failed, so
   nobody hears of it. Only kill(2) from outside of our PID namespace comes from nobody: the payload can't fake it. */
static void take_signals(void) {
  struct { u32 number; int error, code; u32 pid; u8 rest[112]; } *info = (void *)scratch;
  long n;
  while ((n = sys(READ, signal_fd, scratch, sizeof scratch, 0)) > 0)
    for (long i = 0; i < n / (long)sizeof *info; i++)
      if (self == 1 && info[i].number == 15 && info[i].code == 0 && info[i].pid == 0) end(5);
}

/* A command without a terminal takes what it left in its group along. Before its number is given up: until then
   it can be nobody else's. */
static void reap(void) {
  int status, info[32]; /* siginfo: the pid is its fifth number */
  take_signals();
  for (;;) {
    info[4] = 0;
    if (syscall6(WAITID, 0, 0, (long)info, 1 | 4 | 0x01000000 /* WNOHANG, WEXITED, WNOWAIT */, 0, 0) < 0) return;
    int pid = info[4];
    struct stream *s = 0;
    if (!pid) return;
    for (int i = 0; i < STREAMS; i++)
      if (streams[i].used && streams[i].pid == pid && !streams[i].exited) s = &streams[i];
    if (s && (s->kind == PIPES || s->kind == LOGGED)) sys(KILL, -pid, 9, 0, 0);
    if (sys(WAIT4, pid, &status, 1, 0) != pid) return;
    if ((status & 127) == 15) take_signals(); /* Ours may have come meanwhile. */
    if (s) s->exited = 1, s->code = status;
  }
}

/* Returns whether anything was written. */
static int write_input(struct stream *s) {
  u32 before = s->consumed;
  while (s->input >= 0 && s->head < s->tail) {
    long n = sys(WRITE, s->input, s->buffer + s->head, s->tail - s->head, 0);
    if (n == -EAGAIN || (n == -EIO && s->kind == TERMINAL)) break;
    if (n < 0) { n = s->tail - s->head; close_fd(&s->input); }
    s->head += n;
    s->consumed += n;
  }
  if (s->head == s->tail) s->head = s->tail = 0;
  if (s->input_ended && s->head == s->tail && s->kind != TERMINAL) close_fd(&s->input);
  return s->consumed != before;
}

/* Reads one chunk straight into the frame that carries it. Returns whether there may be more. */
static int forward(struct stream *s, int *fd, u32 type) {
  u32 free = room(), most = CHUNK;
  if (*fd < 0 || s->quiet || !s->credit || free < RESERVE + HEADER) return 0;
  if (most > s->credit) most = s->credit;
  if (most > free - RESERVE) most = free - RESERVE;
  long n = sys(READ, *fd, out + out_tail + HEADER, most, 0);
  if (n > 0) {
    int was_urgent = urgent;
    s->credit -= n;
    if (s->exited) s->drained += n;
    header(type, s->id, n);
    /* Nobody acts on what a terminal shows before the command has ended, and then a zero byte is the last. So most
       commands wake the service once. */
    if (s->kind == TERMINAL && out[out_tail - 1] && out_tail - out_head < HOLD_BYTES) urgent = was_urgent;
    return s->drained < DRAIN_MAX;
  }
  if (n == -EAGAIN) return 0;
  if (s->kind == TERMINAL) s->quiet = 1; /* Nobody has it open just now; somebody may open it again. */
  else close_fd(fd);
  return 0;
}

static void check_start(struct stream *s) {
  u8 message[4];
  if (s->status < 0) return;
  long n = sys(READ, s->status, message, 4, 0);
  if (n == -EAGAIN) return;
  close_fd(&s->status);
  if (n == 4) { s->failed = 1; send_numbers(FAILED, s->id, 1, get32(message), 0); }
  else { s->started = 1; send_numbers(STARTED, s->id, 1, s->pid, 0); }
}

/* Everything there is to do for one stream now; the frames it may add fit the reserve. */
static void serve(struct stream *s) {
  if (room() < RESERVE / 2) return;
  check_start(s);
  int wrote = write_input(s);
  if (s->consumed >= INPUT_WINDOW / 4) {
    send_numbers(CONSUMED, s->id, 1, s->consumed, 0);
    s->consumed = 0;
  }
  if (s->failed) { if (s->exited) release(s); return; }
  if (wrote && !s->exited) return; /* Its answer is not there yet; the poll tells when it is. */
  int more = forward(s, &s->output, STDOUT) | forward(s, &s->error, STDERR);
  /* After the exit only what was left in the pipes: a grandchild that holds them delays nothing. Without
     window or room the rest has to wait for them. */
  if (!s->exited || more || ((s->output >= 0 || s->error >= 0) && !s->quiet && s->drained < DRAIN_MAX
      && (!s->credit || room() < RESERVE + HEADER))) return;
  send_numbers(EXITED, s->id, 2, s->code & 127 ? 0 : s->code >> 8 & 255, s->code & 127);
  release(s);
}

/*
 * Shared memory without a name (MAP_SHARED | MAP_ANONYMOUS) keeps pages that no process has mapped, until its last
 * mapping is gone. A mapping can be seen from outside, but not how large the memory behind it is. So each one is told to
 * us when it is made, and goes on at once. The largest lengths ever asked for, in pages, stand in our last argument,
 * where the watchdog reads them: of n that can be seen none is larger than the first n of these.
 */
enum { LARGEST = 16, DIGITS = 8 };
static u32 largest[LARGEST];
static char *published;

static void publish(u64 pages) {
  u32 length = pages > ~0u ? ~0u : pages, at = LARGEST;
  while (at > 0 && largest[at - 1] < length) at--;
  if (at == LARGEST) return;
  for (u32 i = LARGEST - 1; i > at; i--) largest[i] = largest[i - 1];
  largest[at] = length;
  for (u32 i = 0; i < LARGEST * DIGITS && published[i]; i++)
    published[i] = "0123456789abcdef"[largest[i / DIGITS] >> (DIGITS - 1 - i % DIGITS) * 4 & 15];
}

static void tell_mapping(void) {
  struct { u64 id; u32 pid, flags; int number; u32 architecture; u64 pointer, arguments[6]; } asked;
  struct { u64 id; long value; int error; u32 flags; } answer;
  memset(&asked, 0, sizeof asked);
  if (sys(IOCTL, mappings_fd, 0xc0502100 /* SECCOMP_IOCTL_NOTIF_RECV */, &asked, 0) < 0) return; /* It was killed. */
  publish((asked.arguments[1] + 4095) / 4096);
  memset(&answer, 0, sizeof answer);
  answer.id = asked.id;
  answer.flags = 1; /* CONTINUE: its arguments are numbers, and can't change. */
  if (sys(IOCTL, mappings_fd, 0xc0182101 /* SECCOMP_IOCTL_NOTIF_SEND */, &answer, 0) != -EINVAL) return;
  answer.flags = 0;
  answer.error = -ENOMEM;
  sys(IOCTL, mappings_fd, 0xc0182101, &answer, 0);
}

static void watch(struct pollfd *set, int *count, int fd, int events) {
  if (fd < 0) return;
  set[*count].fd = fd;
  set[*count].events = events;
  set[(*count)++].revents = 0;
}

static void loop(void) {
  static struct pollfd set[3 + 4 * STREAMS];
  for (u32 first = 0, held = 0;; first++) {
    int count = 0, wait = -1, full = room() < RESERVE + HEADER;
    watch(set, &count, CONTROL, (room() >= RESERVE / 2 ? POLLIN : 0) | (urgent ? POLLOUT : 0));
    watch(set, &count, signal_fd, POLLIN);
    int mappings = count;
    watch(set, &count, mappings_fd, POLLIN);
    for (int i = 0; i < STREAMS; i++) {
      struct stream *s = &streams[i];
      if (!s->used) continue;
      watch(set, &count, s->status, POLLIN);
      if (s->head < s->tail) watch(set, &count, s->input, POLLOUT);
      if (s->quiet) wait = 20;
      else if (s->credit && !full) watch(set, &count, s->output, POLLIN), watch(set, &count, s->error, POLLIN);
      if (s->exited && s->credit && !full) wait = 0;
    }
    int holds = out_head < out_tail && !urgent && wait;
    int events = sys(POLL, set, count, holds ? HOLD_MS : wait, 0);
    if (holds && !events) urgent = 1;
    /* Also where we are not reading, because our own answers are stuck. */
    if (set[0].revents & (POLLHUP | POLLERR)) end(0);
    if (set[0].revents & POLLIN) receive();
    obey_all();
    if (set[1].revents & POLLIN) reap();
    if (mappings_fd >= 0 && set[mappings].revents & POLLIN) tell_mapping();
    /* Each round begins with another stream, so that none is always the one that finds the buffer full. */
    for (int i = 0; i < STREAMS; i++) {
      struct stream *s = &streams[(first + i) % STREAMS];
      if (!s->used) continue;
      if (!wait || wait == 20) s->quiet = 0;
      serve(s);
    }
    held = out_head < out_tail ? held + 1 : 0;
    if (urgent || held == HOLD_ROUNDS) flush(), held = 0;
  }
}

/* ---- what no command may ask of the kernel ---- */

/*
 * The one list of system calls that fail with EPERM whatever their arguments; the escape suite reads it here
 * and tries every line. What depends on arguments follows in `build_filter`. The filter is installed by PID 1
 * itself and inherited by all that it starts, so that it is the same whoever made the namespaces.
 */
#define DENY(name, number) number
static const u16 denied[] = {
  /* namespaces and mounts */
  DENY(unshare, 272), DENY(setns, 308), DENY(mount, 165), DENY(umount2, 166), DENY(pivot_root, 155),
  DENY(chroot, 161), DENY(open_tree, 428), DENY(move_mount, 429), DENY(fsopen, 430), DENY(fsconfig, 431),
  DENY(fsmount, 432), DENY(fspick, 433), DENY(mount_setattr, 442), DENY(open_tree_attr, 467),
  DENY(open_by_handle_at, 304),
  /* parts of the kernel that programs can do without and where its holes are found */
  DENY(io_uring_setup, 425), DENY(io_uring_enter, 426), DENY(io_uring_register, 427), DENY(bpf, 321),
  DENY(perf_event_open, 298), DENY(userfaultfd, 323), DENY(add_key, 248), DENY(request_key, 249),
  DENY(keyctl, 250), DENY(syslog, 103), DENY(uselib, 134), DENY(vhangup, 153),
  /* the machine */
  DENY(kexec_load, 246), DENY(kexec_file_load, 320), DENY(init_module, 175), DENY(finit_module, 313),
  DENY(delete_module, 176), DENY(reboot, 169), DENY(swapon, 167), DENY(swapoff, 168), DENY(acct, 163),
  DENY(quotactl, 179), DENY(quotactl_fd, 443), DENY(iopl, 172), DENY(ioperm, 173),
  /* other processes */
  DENY(ptrace, 101), DENY(process_vm_readv, 310), DENY(process_vm_writev, 311), DENY(process_madvise, 440),
  DENY(pidfd_getfd, 438), DENY(kcmp, 312), DENY(move_pages, 279), DENY(migrate_pages, 256),
};

/* Calls that keep memory where nobody could count it. The error is that of a kernel without the call, or of files that
   it does not work with, so that programs do without. The escape suite reads this list as well. */
#define LACK(name, number, error) number, error
static const u16 lacking[][2] = {
  /* files in memory without a file system that bounds them */
  { LACK(memfd_create, 319, ENOSYS) }, { LACK(memfd_secret, 447, ENOSYS) },
  /* semaphores and messages: gigabytes by their own limits */
  { LACK(semget, 64, ENOSYS) }, { LACK(msgget, 68, ENOSYS) },
  /* a whole page, or two megabytes, for a byte of it in a pipe */
  { LACK(vmsplice, 278, EINVAL) }, { LACK(splice, 275, EINVAL) }, { LACK(tee, 276, EINVAL) },
  /* rules without an end behind one descriptor */
  { LACK(landlock_create_ruleset, 444, ENOSYS) }, { LACK(landlock_add_rule, 445, ENOSYS) },
  { LACK(landlock_restrict_self, 446, ENOSYS) },
};

enum { MMAP = 9, SHMGET = 29, CLONE = 56, SOCKET = 41, SOCKETPAIR = 53, SETSOCKOPT = 54, CLONE3 = 435, AF_UNIX = 1, AF_INET = 2,
  AF_INET6 = 10, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, SOL_SOCKET = 1, SO_SNDBUF = 7, SO_RCVBUF = 8, SO_SNDBUFFORCE = 32,
  SO_RCVBUFFORCE = 33, SET_DUMPABLE = 4, SHARED = 1, ANONYMOUS = 0x20, PAGE_BYTES = 4096,
  NEW_NAMESPACES = 0x7e020000, X32 = 0x40000000, X86_64 = (int)0xc000003e, TIOCSTI = 0x5412, TIOCLINUX = 0x541c };
/* Classic BPF over struct seccomp_data; of an argument the low half, which is all that the kernel looks at
   where it takes an int. */
enum { LOAD = 0x20, EQUAL = 0x15, ABOVE = 0x25, ANY_BIT = 0x45, RETURN = 0x06, NUMBER = 0, ARCHITECTURE = 4, FIRST = 16,
  SECOND = 24, SECOND_HIGH = 28, THIRD = 32, FOURTH = 40, ALLOW = 0x7fff0000, REFUSE = 0x00050000, TELL = 0x7fc00000 };

static struct instruction { u16 code; u8 yes, no; u32 value; } filter[128 + 2 * sizeof denied / sizeof denied[0]
  + 2 * sizeof lacking / sizeof lacking[0]];
static u16 filter_length;

/* `yes` and `no` are how many instructions a test skips. */
static void emit(u16 code, u32 value, u8 yes, u8 no) {
  struct instruction *i = &filter[filter_length++];
  i->code = code;
  i->yes = yes;
  i->no = no;
  i->value = value;
}

static void refuse_call(u32 number, int error) {
  emit(EQUAL, number, 0, 1);
  emit(RETURN, REFUSE | error, 0, 0);
}

/* Only these families and protocols, since an unknown one is a part of the kernel that may be loaded for it. */
static void allow_families(u32 number, int with_ip) {
  emit(EQUAL, number, 0, with_ip ? 10 : 8);
  emit(LOAD, FIRST, 0, 0);
  if (with_ip) emit(EQUAL, AF_INET, 2, 0), emit(EQUAL, AF_INET6, 1, 0);
  emit(EQUAL, AF_UNIX, 0, 5);
  emit(LOAD, THIRD, 0, 0);
  emit(ABOVE, 1, 0, 2);
  emit(EQUAL, PROTOCOL_TCP, 1, 0);
  emit(EQUAL, PROTOCOL_UDP, 0, 1);
  emit(RETURN, ALLOW, 0, 0);
  emit(RETURN, REFUSE | EPERM, 0, 0);
}

/* Memory that the watchdog counts by what is allowed here; see README.md. */
static void keep_memory_countable(int tells) {
  /* A buffer keeps its size, and who asks for another one hears of nothing, as where the node's limit is met. */
  emit(EQUAL, SETSOCKOPT, 0, 9);
  emit(LOAD, SECOND, 0, 0);
  emit(EQUAL, SOL_SOCKET, 0, 6);
  emit(LOAD, THIRD, 0, 0);
  emit(EQUAL, SO_SNDBUF, 3, 0);
  emit(EQUAL, SO_RCVBUF, 2, 0);
  emit(EQUAL, SO_SNDBUFFORCE, 1, 0);
  emit(EQUAL, SO_RCVBUFFORCE, 0, 1);
  emit(RETURN, REFUSE, 0, 0);
  emit(RETURN, ALLOW, 0, 0);
  /* The kernel has 4096 segments at most: a page each, as databases want for a lock. */
  emit(EQUAL, SHMGET, 0, 6);
  emit(LOAD, SECOND_HIGH, 0, 0);
  emit(EQUAL, 0, 0, 3);
  emit(LOAD, SECOND, 0, 0);
  emit(ABOVE, PAGE_BYTES, 1, 0);
  emit(RETURN, ALLOW, 0, 0);
  emit(RETURN, REFUSE | EINVAL, 0, 0);
  /* Else its memory and its descriptors are hidden from the service. */
  emit(EQUAL, PRCTL, 0, 6);
  emit(LOAD, FIRST, 0, 0);
  emit(EQUAL, SET_DUMPABLE, 0, 3);
  emit(LOAD, SECOND, 0, 0);
  emit(EQUAL, 0, 0, 1);
  emit(RETURN, REFUSE | EPERM, 0, 0);
  emit(RETURN, ALLOW, 0, 0);
  if (!tells) return;
  emit(EQUAL, MMAP, 0, 5);
  emit(LOAD, FOURTH, 0, 0);
  emit(ANY_BIT, ANONYMOUS, 0, 2);
  emit(ANY_BIT, SHARED, 0, 1);
  emit(RETURN, TELL, 0, 0);
  emit(RETURN, ALLOW, 0, 0);
}

static void build_filter(int with_ip, int tells) {
  filter_length = 0;
  emit(LOAD, ARCHITECTURE, 0, 0);
  emit(EQUAL, X86_64, 1, 0); /* Not the numbers of i386, */
  emit(RETURN, REFUSE | EPERM, 0, 0);
  emit(LOAD, NUMBER, 0, 0);
  emit(ANY_BIT, X32, 0, 1); /* nor those of x32: both would go around the list. */
  emit(RETURN, REFUSE | EPERM, 0, 0);
  keep_memory_countable(tells);
  for (u32 i = 0; i < sizeof denied / sizeof denied[0]; i++) refuse_call(denied[i], EPERM);
  for (u32 i = 0; i < sizeof lacking / sizeof lacking[0]; i++) refuse_call(lacking[i][0], lacking[i][1]);
  /* Its flags are in memory, where no filter sees them. C libraries take clone instead. */
  refuse_call(CLONE3, ENOSYS);
  allow_families(SOCKET, with_ip);
  allow_families(SOCKETPAIR, with_ip);
  emit(EQUAL, CLONE, 0, 4);
  emit(LOAD, FIRST, 0, 0);
  emit(ANY_BIT, NEW_NAMESPACES, 0, 1);
  emit(RETURN, REFUSE | EPERM, 0, 0);
  emit(RETURN, ALLOW, 0, 0);
  emit(EQUAL, PRLIMIT64, 0, 4);
  emit(LOAD, FIRST, 0, 0);
  emit(EQUAL, 0, 0, 1); /* Only one's own limits: PID 1 without descriptors could start nothing. */
  emit(RETURN, ALLOW, 0, 0);
  emit(RETURN, REFUSE | EPERM, 0, 0);
  emit(EQUAL, IOCTL, 0, 4);
  emit(LOAD, SECOND, 0, 0);
  emit(EQUAL, TIOCSTI, 1, 0); /* Types into a terminal. */
  emit(EQUAL, TIOCLINUX, 0, 1);
  emit(RETURN, REFUSE | EPERM, 0, 0);
  emit(RETURN, ALLOW, 0, 0);
}

static void check(long result, const char *what) {
  u64 length = 0;
  if (result >= 0) return;
  while (what[length]) length++;
  sys(WRITE, 2, what, length, 0); /* To the starter's log, which the service reads. */
  end(4);
}

/* As root the starter leaves us all capabilities of our user namespace, and the bounding set, from which a
   program of user 0 would have them again. */
static void drop_capabilities(void) {
  u32 head[2] = { 0x20080522, 0 }, none[6] = { 0, 0, 0, 0, 0, 0 };
  for (int capability = 0; sys(PRCTL, 23 /* PR_CAPBSET_READ */, capability, 0, 0) >= 0; capability++)
    sys(PRCTL, 24 /* PR_CAPBSET_DROP */, capability, 0, 0); /* The service checks what came of it. */
  sys(PRCTL, 47 /* PR_CAP_AMBIENT */, 4 /* CLEAR_ALL */, 0, 0);
  check(sys(CAPSET, head, none, 0, 0), "capabilities can't be dropped\n");
}

/* Without a network namespace the host's abstract sockets are in reach, and no filter sees a socket's name.
   Landlock does, from Linux 6.12; before that it is part of what level B lacks. */
static void scope_abstract_sockets(void) {
  u64 rules[3] = { 0, 0, 1 /* LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET */ };
  int fd = sys(LANDLOCK_CREATE, rules, sizeof rules, 0, 0);
  if (fd < 0) return;
  sys(LANDLOCK_RESTRICT, fd, 0, 0, 0);
  close_fd(&fd);
}

/* Modes: `A` with a network namespace, `B` without, `0` nothing at all, for the host driver. */
static void confine(char mode) {
  struct { u16 length; struct instruction *code; } program = { 0, filter };
  if (mode == '0') return;
  drop_capabilities();
  check(sys(PRCTL, 38 /* PR_SET_NO_NEW_PRIVS */, 1, 0, 0), "no_new_privs is not available\n");
  if (mode != 'A') scope_abstract_sockets();
  build_filter(mode == 'A', 1);
  program.length = filter_length;
  mappings_fd = sys(SECCOMP, 1 /* SET_MODE_FILTER */, 8 /* NEW_LISTENER */, &program, 0);
  if (mappings_fd >= 0) return;
  build_filter(mode == 'A', 0);
  program.length = filter_length;
  check(sys(SECCOMP, 1, 0, &program, 0), "seccomp filters are not available\n");
}

/* ---- the beginning ---- */

enum { RDONLY = 1, NOSUID = 2, NODEV = 4, NOEXEC = 8, REMOUNT = 32, BIND = 4096 };

/* What belongs to the host's root is for a sandbox of root's to change, capabilities or not: the settings below
   /proc/sys (core_pattern is a way to run programs on the host), the modes of the device files. */
static void seal(const char *path) {
  long result = syscall6(MOUNT, 0, (long)path, 0, REMOUNT | BIND | RDONLY | NOSUID, 0, 0);
  /* Not there, or no mount: then it is a file of the sandbox's own. */
  check(result == -EINVAL || result == -ENOENT ? 0 : result, "the host's files can't be sealed\n");
}

static void seal_settings(void) {
  check(syscall6(MOUNT, 0, (long)"/proc", 0, REMOUNT | BIND | RDONLY | NOSUID | NODEV | NOEXEC, 0, 0),
    "/proc can't be sealed\n");
}

/* Only of a /dev that `stage.c` has not made. */
static void seal_devices(void) {
  seal("/dev"); /* A RAM disk, which for root Apptainer gives no size. */
  seal("/dev/null"), seal("/dev/zero"), seal("/dev/full"), seal("/dev/random"), seal("/dev/urandom"), seal("/dev/tty");
}

/* The file system that holds /tmp, /dev/shm and the root's changes: Apptainer gives root's no size. */
static void bound_tmp(const char *bytes) {
  char options[32] = "size=", *to = options + 5;
  while (*bytes && to < options + 31) *to++ = *bytes++;
  check(syscall6(MOUNT, 0, (long)"/tmp", 0, REMOUNT | NOSUID | NODEV, (long)options, 0),
    "the RAM layer can't be bounded\n");
}

/* Never above what we were given: then the kernel would refuse and leave no limit of ours at all. */
static void limit(int resource, const char *text) {
  u64 wanted = 0, limits[2];
  while (*text >= '0' && *text <= '9') wanted = wanted * 10 + (*text++ - '0');
  sys(PRLIMIT64, 0, resource, 0, limits);
  if (wanted > limits[1]) wanted = limits[1];
  limits[0] = limits[1] = wanted;
  sys(PRLIMIT64, 0, resource, limits, 0);
}

/* Arguments: processes, open files, bytes of one file, the home directory to make, the mode of `confine`,
   whether to seal (0 or 1), the bytes for `bound_tmp` (0: leave it), room for what `publish` writes. */
void begin(long *stack) {
  char **argv = (char **)(stack + 1);
  u64 all = ~0ul, child_and_term = 1ul << 16 | 1ul << 14, action[4] = { 0, 0, 0, 0 };
  self = sys(GETPID, 0, 0, 0, 0);
  /* The kernel's victim is the sandbox, not the service. Before DUMPABLE, which closes our /proc files. */
  int fd = sys(OPEN, "/proc/self/oom_score_adj", 1 | O_CLOEXEC, 0, 0);
  sys(WRITE, fd, "1000", 4, 0);
  close_fd(&fd);
  if (stack[0] < 9) end(2);
  published = argv[8];
  /* The starter's, with paths of the host. A child of ours that reads files would find it in its own /proc. */
  for (char **e = argv + stack[0] + 1; *e; e++)
    for (char *c = *e; *c; c++) *c = 0;
  for (int i = 4; i < 64; i++) sys(CLOSE, i, 0, 0, 0);
  sys(CLOSE_RANGE, 64, ~0u, 0, 0);
  /* Where the service runs as root: the starter leaves us the capabilities for it. */
  if (argv[6][0] == '1') seal_settings();
  if (argv[7][0] != '0') seal_devices(), bound_tmp(argv[7]);
  sys(PRCTL, SET_DUMPABLE, 0, 0, 0); /* The payload has our uid: no ptrace, no /proc/1/mem. */
  confine(argv[5][0]);
  sys(PRCTL, 36 /* PR_SET_CHILD_SUBREAPER */, 1, 0, 0);
  for (int number = 1; number <= 64; number++) sys(SIGACTION, number, action, 0, 8);
  sys(SIGPROCMASK, 2, &all, 0, 8);
  limit(6, argv[1]);
  limit(7, argv[2]);
  limit(1, argv[3]);
  limit(4, "0");
  limit(12, "819200"); /* bytes of POSIX message queues */
  sys(MKDIR, argv[4], 0700, 0, 0);
  signal_fd = sys(SIGNALFD4, -1, &child_and_term, 8, O_NONBLOCK | O_CLOEXEC);
  /* The starter's messages end here: nothing the sandbox does reaches its log. */
  fd = sys(OPEN, "/dev/null", O_RDWR | O_CLOEXEC, 0, 0);
  for (int i = 0; i < 3; i++) if (fd >= 0) sys(DUP3, fd, i, 0, 0);
  if (fd > 3) close_fd(&fd);
  send_numbers(READY, 0, 2, self, VERSION);
  flush();
  loop();
}
