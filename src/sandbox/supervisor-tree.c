/*
 * Part of supervisor.c: whole folders out of the sandbox and into it, as a child of PID 1. Below the folder
 * that was asked for, every name is opened by itself and never through a link, so that whoever changes the
 * tree meanwhile leads neither direction astray.
 *
 * Records, little endian: u8 kind, u32 length of the payload, payload. `tree-records.ts` has the same letters.
 *   d, f   u32 mode, path: a folder; a file, whose bytes follow as records b
 *   l      u32 length of the path, path, target: a link
 *   o      u32 mode, path: what is not carried: a device, a fifo, a socket; mode 0: it can't be read
 *   x      u32 error, path: the end, because something went wrong there
 */
enum { OPENAT = 257, MKDIRAT = 258, FSTATAT = 262, UNLINKAT = 263, SYMLINKAT = 266, READLINKAT = 267, GETDENTS64 = 217 };
enum { DEPTH_MAX = 200, PATH_BYTES = 4096, RECORD = 5, ENAMETOOLONG = 36, ELOOP = 40, EPROTO = 71 };
enum { O_DIRECTORY = 0200000, O_NOFOLLOW = 0400000, O_PATH = 010000000, O_EXCL = 0200, NO_LINK = 0x100 };
enum { S_TYPE = 0170000, S_FOLDER = 0040000, S_FILE = 0100000, S_LINK = 0120000 };

/* A record's number and path; what the path is of lies below the folder that was asked for. */
static u8 entry[RECORD + 4 + 2 * PATH_BYTES];
static char *const entry_path = (char *)entry + RECORD + 4;
static u32 entry_length;

static void write_all(int fd, const u8 *bytes, u32 length) {
  while (length) {
    long n = sys(WRITE, fd, bytes, length, 0);
    if (n < 0) sys(EXIT_GROUP, -n, 0, 0, 0);
    bytes += n;
    length -= n;
  }
}

static void send_entry(u8 kind, u32 number, u32 length) {
  entry[0] = kind;
  put32(entry + 1, 4 + length);
  put32(entry + RECORD, number);
  write_all(1, entry, RECORD + 4 + length);
}

/* The path stands in `entry` already, `length` bytes of it. */
static void fail_at(long error, u32 length) {
  send_entry('x', -error, length);
  sys(EXIT_GROUP, -error, 0, 0, 0);
}

/* ---- out ---- */

static void send_folder(int fd, u32 length, int depth);

static void send_bytes(int fd, u32 length) {
  long n;
  while ((n = sys(READ, fd, scratch + RECORD, sizeof scratch - RECORD, 0)) > 0) {
    scratch[0] = 'b';
    put32(scratch + 1, n);
    write_all(1, scratch, RECORD + n);
  }
  if (n < 0) fail_at(n, length);
}

static void send_link(int folder, const char *name, u32 length) {
  long n = sys(READLINKAT, folder, name, entry_path + length, PATH_BYTES);
  if (n == -ENOENT || n == -EINVAL) return; /* It was one a moment ago. */
  if (n < 0) fail_at(n, length);
  entry[0] = 'l';
  put32(entry + 1, 4 + length + n);
  put32(entry + RECORD, length);
  write_all(1, entry, RECORD + 4 + length + n);
}

static void send_named(int folder, const char *name, u32 length, int depth) {
  long stat[18];
  long error = sys(FSTATAT, folder, name, stat, NO_LINK);
  if (error == -ENOENT) return;
  if (error < 0) fail_at(error, length);
  u32 type = (u32)stat[3] & S_TYPE;
  if (type == S_LINK) { send_link(folder, name, length); return; }
  if (type != S_FILE && type != S_FOLDER) { send_entry('o', stat[3], length); return; }
  /* O_NONBLOCK, and the type once more: it may be a fifo by now. */
  int fd = sys(OPENAT, folder, name, O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
  if (fd == -ENOENT) return;
  if (fd == -EACCES || fd == -ELOOP) { send_entry('o', 0, length); return; }
  if (fd < 0) fail_at(fd, length);
  sys(FSTAT, fd, stat, 0, 0);
  if (((u32)stat[3] & S_TYPE) != type) send_entry('o', stat[3], length);
  else {
    send_entry(type == S_FILE ? 'f' : 'd', stat[3] & 0777, length);
    if (type == S_FILE) send_bytes(fd, length);
    else send_folder(fd, length, depth + 1);
  }
  close_fd(&fd);
}

static void send_folder(int fd, u32 length, int depth) {
  u8 names[4096] __attribute__((aligned(8)));
  long n;
  if (depth > DEPTH_MAX) fail_at(-ENAMETOOLONG, length);
  while ((n = sys(GETDENTS64, fd, names, sizeof names, 0)) > 0)
    for (u8 *at = names; at < names + n; at += at[16] | at[17] << 8) {
      char *name = (char *)at + 19;
      u32 end = length;
      if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
      if (end) entry_path[end++] = '/';
      for (char *c = name; *c && end < PATH_BYTES; c++) entry_path[end++] = *c;
      if (end >= PATH_BYTES) fail_at(-ENAMETOOLONG, end);
      send_named(fd, name, end, depth);
    }
  if (n < 0 && n != -ENOENT) fail_at(n, length);
}

/* ---- in ---- */

static void read_all(u8 *bytes, u32 length) {
  while (length) {
    long n = sys(READ, 0, bytes, length, 0);
    if (n <= 0) sys(EXIT_GROUP, EPROTO, 0, 0, 0);
    bytes += n;
    length -= n;
  }
}

static int is_plain(const char *name) {
  return *name && !(name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])));
}

/* A folder of this name, whatever else was there. Tried again where somebody changes it meanwhile. */
static int enter(int folder, const char *name) {
  for (int tries = 0; tries < 100; tries++) {
    int fd = sys(OPENAT, folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd >= 0) return fd;
    if (fd == -ENOTDIR || fd == -ELOOP) sys(UNLINKAT, folder, name, 0, 0);
    else if (fd != -ENOENT) return fd;
    long error = sys(MKDIRAT, folder, name, 0755, 0);
    if (error < 0 && error != -EEXIST) return error;
  }
  return -ELOOP;
}

/* The folder that a path's last name lies in, made where it is missing; `name` is then that last name. */
static int enter_parent(int base, u32 length, char **name) {
  int folder = base;
  char *start = entry_path;
  entry_path[length] = 0;
  for (char *c = start; *c; c++) {
    if (*c != '/') continue;
    *c = 0;
    int next = is_plain(start) ? enter(folder, start) : -EINVAL;
    *c = '/';
    if (folder != base) close_fd(&folder);
    if (next < 0) return next;
    folder = next;
    start = c + 1;
  }
  *name = start;
  if (is_plain(start)) return folder;
  if (folder != base) close_fd(&folder);
  return -EINVAL;
}

/* A fresh one: who has the old one open, or by another name, keeps that. */
static int make_file(int folder, const char *name) {
  for (int tries = 0; tries < 100; tries++) {
    long error = sys(UNLINKAT, folder, name, 0, 0);
    if (error < 0 && error != -ENOENT) return error;
    int fd = sys(OPENAT, folder, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC | WRITE, 0600);
    if (fd != -EEXIST) return fd;
  }
  return -ELOOP;
}

static long make_link(int folder, const char *name, const char *target) {
  long error = sys(UNLINKAT, folder, name, 0, 0);
  return error < 0 && error != -ENOENT ? error : sys(SYMLINKAT, target, folder, name, 0);
}

/* Always to be entered and written by its owner: what it holds comes next. */
static long make_folder(int folder, const char *name, u32 mode) {
  int fd = enter(folder, name), opened;
  if (fd < 0) return fd;
  opened = sys(OPENAT, fd, ".", O_DIRECTORY | O_CLOEXEC, 0);
  if (opened >= 0) sys(FCHMOD, opened, (mode & 0777) | 0700, 0, 0);
  close_fd(&opened);
  close_fd(&fd);
  return 0;
}

static void take_entry(int base, u8 kind, u32 length, int *file) {
  char target[PATH_BYTES + 1], *name;
  u32 number = get32(entry + RECORD), path = kind == 'l' ? number : length;
  if (path >= PATH_BYTES || path > length || length - path > PATH_BYTES) sys(EXIT_GROUP, EPROTO, 0, 0, 0);
  memcpy(target, entry_path + path, length - path);
  target[length - path] = 0;
  int folder = enter_parent(base, path, &name);
  long error = folder;
  if (folder >= 0 && kind == 'f') {
    error = *file = make_file(folder, name);
    if (error >= 0) sys(FCHMOD, *file, number & 0777, 0, 0);
  } else if (folder >= 0) error = kind == 'l' ? make_link(folder, name, target) : make_folder(folder, name, number);
  if (error < 0) fail_at(error, path);
  if (folder != base) close_fd(&folder);
  entry_length = path;
}

static void take_bytes(int file, u32 left) {
  while (left) {
    u32 most = left < sizeof scratch ? left : sizeof scratch;
    read_all(scratch, most);
    for (u32 at = 0; at < most;) {
      long n = sys(WRITE, file, scratch + at, most - at, 0);
      if (n < 0) fail_at(n, entry_length);
      at += n;
    }
    left -= most;
  }
}

/* Ends with the input, which only ends when all of it was sent. */
static void take_tree(int base) {
  int file = -1;
  for (;;) {
    u8 head[RECORD];
    long n = sys(READ, 0, head, 1, 0);
    if (n <= 0) sys(EXIT_GROUP, -n, 0, 0, 0);
    read_all(head + 1, RECORD - 1);
    u32 length = get32(head + 1);
    if (head[0] == 'b' && file >= 0) { take_bytes(file, length); continue; }
    if (length < 4 || length > sizeof entry - RECORD) sys(EXIT_GROUP, EPROTO, 0, 0, 0);
    close_fd(&file);
    read_all(entry + RECORD, length);
    take_entry(base, head[0], length - 4, &file);
  }
}

/* The folder itself is found as the sandbox finds it, links and all, and made where it is missing. */
static void copy_tree(int kind) {
  char *path = arguments[0];
  if (kind == WRITE_TREE) make_parents(path), sys(MKDIR, path, 0755, 0, 0);
  int fd = sys(OPEN, path, O_DIRECTORY | O_CLOEXEC, 0, 0);
  if (fd < 0) fail(fd);
  sys(CLOSE, 3, 0, 0, 0); /* Tells PID 1 that the folder is open. */
  if (kind == WRITE_TREE) take_tree(fd);
  send_folder(fd, 0, 0);
  sys(EXIT_GROUP, 0, 0, 0, 0);
}
