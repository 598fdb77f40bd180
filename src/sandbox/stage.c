/*
 * Lays a sandbox's root file system ready and runs the program that starts the sandbox with it:
 *
 *   stage FOLDER IMAGE BYTES LAYER MOUNTER OPTIONS PROGRAM ARGUMENT...
 *
 * In a user and mount namespace of its own it mounts at FOLDER a RAM disk of BYTES and in that
 *
 *   root/            the image with a writable layer: in the RAM disk, or in the folder LAYER (empty: none)
 *   tmp/ var_tmp/    for /tmp and /var/tmp
 *   dev/             for /dev, which nothing can be written to except its shm/ and its terminals
 *
 * IMAGE is a folder, or a file that the FUSE program MOUNTER (else empty) serves with OPTIONS: it is called like
 * squashfuse, and lives as long as we do. When it ends, however it ends, so does the sandbox, whose files are gone.
 *
 * The starters could do so themselves, but worse: Apptainer's overlay can't remove or rename a folder of the
 * image (it is mounted without `userxattr`), and neither bubblewrap nor, for root, Apptainer bounds its size.
 * The names are what a payload finds in its mounts.
 */
#include "system.h"

enum { WRITE = 1, OPEN = 2, CLOSE = 3, FORK = 57, EXECVE = 59, WAIT4 = 61, KILL = 62, FCNTL = 72, CHDIR = 80, MKDIR = 83, UNLINK = 87, SYMLINK = 88,
  CHMOD = 90, GETUID = 102, GETGID = 104, SETSID = 112, UMASK = 95, PRCTL = 157, MOUNT = 165, EXIT_GROUP = 231,
  UNSHARE = 272, CLOSE_RANGE = 436, MKNOD = 133, MOUNT_SETATTR = 442 };
enum { NEW_USER = 0x10000000, NEW_MOUNTS = 0x00020000, READ_ONLY = 1, NOSUID = 2, NODEV = 4, NOEXEC = 8, REMOUNT = 32,
  BIND = 4096, RECURSIVE = 16384, HERE = -100, AT_RECURSIVE = 0x8000,
  WHITEOUT = 0020000 };
enum { O_WRITE = 1, O_READ_WRITE = 2, O_CREATE = 0100, O_EXCLUSIVE = 0200, O_CLOEXEC = 02000000, SET_DESCRIPTOR_FLAGS = 2, PARENT_DEATH_SIGNAL = 1,
  NO_NEW_PRIVS = 38, KILLED = 9, ENOENT = 2, EEXIST = 17, ENOSYS = 38, PAGE_BYTES = 4096 };

static u64 length(const char *text) {
  u64 n = 0;
  while (text[n]) n++;
  return n;
}

static char *append(char *to, const char *text) {
  u64 n = length(text);
  memcpy(to, text, n + 1);
  return to + n;
}

static char *append_number(char *to, u64 n) {
  if (n > 9) to = append_number(to, n / 10);
  *to++ = '0' + n % 10;
  *to = 0;
  return to;
}

static u64 number(const char *text) {
  u64 n = 0;
  while (*text >= '0' && *text <= '9') n = n * 10 + (*text++ - '0');
  return n;
}

/* `what` is one of the texts below, and short. */
static void check(long result, const char *what) {
  static char text[256];
  if (result >= 0) return;
  append(append_number(append(append(append(text, "stage: "), what), " failed with errno "), -result), "\n");
  sys(WRITE, 2, text, length(text), 0);
  sys(EXIT_GROUP, 4, 0, 0, 0);
}

static void write_file(const char *path, const char *text) {
  int fd = sys(OPEN, path, O_WRITE, 0, 0);
  check(fd, path);
  check(sys(WRITE, fd, text, length(text), 0), path);
  sys(CLOSE, fd, 0, 0, 0);
}

/* Ourselves under our own number: files keep their owner, and who starts as root is root. */
static void map(const char *path, u64 id) {
  static char text[64];
  append(append_number(append(append_number(text, id), " "), id), " 1");
  write_file(path, text);
}

static void mount(const char *from, const char *to, const char *type, long flags, const char *options, const char *what) {
  check(syscall6(MOUNT, (long)from, (long)to, (long)type, flags, (long)options, 0), what);
}

static void folder(const char *path, u32 mode) {
  long result = sys(MKDIR, path, mode, 0, 0);
  check(result == -EEXIST ? 0 : result, path);
  check(sys(CHMOD, path, mode, 0, 0), path);
}

/* Mount points that an image may lack. They are a layer below it: in an image of somebody else's none could be
   made, and above it they would change the modes of its folders. */
static const char *skeleton[] = { "skeleton", "skeleton/dev", "skeleton/proc", "skeleton/tmp", "skeleton/var",
  "skeleton/var/tmp", "skeleton/run", "skeleton/run/io", "skeleton/run/rollout", 0 };

/* The device at `to` is the node's at `from`, where the node has that. */
static const char *devices[][2] = { { "dev/null", "/dev/null" }, { "dev/full", "/dev/full" }, { "dev/random", "/dev/random" },
  { "dev/urandom", "/dev/urandom" }, { "dev/tty", "/dev/tty" },
  /* Both read as zeros. Shared mappings of the real /dev/zero are memory that no filter and no watchdog sees. */
  { "dev/zero", "/dev/full" }, { "dev/zero", "/dev/zero" }, { 0, 0 } };
static const char *links[][2] = { { "dev/fd", "/proc/self/fd" }, { "dev/stdin", "/proc/self/fd/0" },
  { "dev/stdout", "/proc/self/fd/1" }, { "dev/stderr", "/proc/self/fd/2" }, { "dev/ptmx", "pts/ptmx" }, { 0, 0 } };

/* Both starters make a RAM disk for /dev, which is another one to fill. */
static void make_devices(void) {
  u64 read_only[4] = { READ_ONLY, 0, 0, 0 };
  mount("none", "dev", "tmpfs", NOSUID, "mode=755,size=64k,nr_inodes=64", "a RAM disk for /dev");
  for (int i = 0; devices[i][0]; i++) {
    int fd = sys(OPEN, devices[i][0], O_WRITE | O_CREATE | O_EXCLUSIVE, 0600, 0);
    if (fd < 0) continue; /* It is there already. */
    sys(CLOSE, fd, 0, 0, 0);
    long result = syscall6(MOUNT, (long)devices[i][1], (long)devices[i][0], 0, BIND, 0, 0);
    if (result == -ENOENT) sys(UNLINK, devices[i][0], 0, 0, 0);
    else check(result, devices[i][1]);
  }
  for (int i = 0; links[i][0]; i++) check(sys(SYMLINK, links[i][1], links[i][0], 0, 0), links[i][0]);
  folder("dev/pts", 0755), folder("dev/shm", 0755);
  /* Of root's sandboxes the host's device files are the sandbox's to change, capabilities or not. */
  long sealed = syscall6(MOUNT_SETATTR, HERE, (long)"dev", AT_RECURSIVE, (long)read_only, sizeof read_only, 0);
  for (int i = 0; sealed == -ENOSYS && devices[i][0]; i++)
    syscall6(MOUNT, 0, (long)devices[i][0], 0, REMOUNT | BIND | READ_ONLY | NOSUID, 0, 0);
  if (sealed == -ENOSYS) sealed = syscall6(MOUNT, 0, (long)"dev", 0, REMOUNT | BIND | READ_ONLY | NOSUID, 0, 0);
  check(sealed, "to seal /dev");
  /* The node has 4096 terminals in all: none of its sandboxes may take them from the others. */
  mount("devpts", "dev/pts", "devpts", NOSUID | NOEXEC, "newinstance,ptmxmode=0666,mode=620,max=128", "a file system for terminals");
  mount("shm", "dev/shm", 0, BIND, 0, "the bind mount of /dev/shm");
}

/* What Apptainer reads in an image and runs as the sandbox's first process, with the control socket and all
   capabilities, before PID 1 has confined itself. A whiteout hides each, in a layer above the image. */
static const char *hooks[] = { "mask/.singularity.d", "mask/environment", "mask/scif", 0 };

/* All descriptors from `first` on except one. The control socket is among them: its close has to be seen. */
static void close_others(int first, int kept) {
  if (kept > first) sys(CLOSE_RANGE, first, kept - 1, 0, 0);
  long result = sys(CLOSE_RANGE, kept < first ? first : kept + 1, ~0u, 0, 0);
  for (int fd = first; result < 0 && fd < 4096; fd++)
    if (fd != kept) sys(CLOSE, fd, 0, 0, 0);
}

/* Starts what serves the image's file outside of the sandbox; who asks for its files before it is ready waits. */
static struct server { long pid, device; } serve(char **argv, char **environment, u64 uid, u64 gid) {
  static char options[128], point[32];
  int fd = sys(OPEN, "/dev/fuse", O_READ_WRITE | O_CLOEXEC, 0, 0);
  check(fd, "/dev/fuse");
  char *end = append_number(append(append_number(append(options, "fd="), fd), ",rootmode=40000,user_id="), uid);
  append_number(append(end, ",group_id="), gid);
  mount("image", "image", "fuse", NOSUID | NODEV | READ_ONLY, options, "the image's FUSE mount");
  append_number(append(point, "/dev/fd/"), fd);
  long pid = sys(FORK, 0, 0, 0, 0);
  check(pid, "fork");
  if (pid > 0) return (struct server){ pid, fd };
  char *server[] = { argv[5], "-f", "-o", argv[6], argv[2], point, 0 };
  sys(FCNTL, fd, SET_DESCRIPTOR_FLAGS, 0, 0);
  sys(PRCTL, PARENT_DEATH_SIGNAL, KILLED, 0, 0);
  sys(PRCTL, NO_NEW_PRIVS, 1, 0, 0);
  close_others(3, fd);
  check(sys(EXECVE, argv[5], server, environment, 0), "to run the program that mounts the image");
  return (struct server){ 0, -1 };
}

/* The image with its layer above, then what starts the sandbox. */
static void start(char **argv, char **environment) {
  if (*argv[4]) mount(argv[4], "layer", 0, BIND, 0, "the layer's bind mount");
  folder("layer/upper", 0755), folder("layer/work", 0755);
  mount("overlay", "root", "overlay", NOSUID | NODEV,
    "lowerdir=mask:image:skeleton,upperdir=layer/upper,workdir=layer/work,userxattr", "an overlay");
  sys(UMASK, 022, 0, 0, 0);
  check(sys(CHDIR, "/", 0, 0, 0), "/");
  check(sys(EXECVE, argv[7], argv + 7, environment, 0), "to run the starter");
}

/* Lives as long as the starter, which leaves this mount namespace: with its last process the kernel would take it
   apart, and then /proc/self/exe, by which Apptainer finds its files, has no whole path. It keeps the server's
   device too: of an image that is served no more nobody may read an error, and take it for a command's result. */
static void keep(long pid, struct server server) {
  int status = 0;
  long ended;
  close_others(0, server.device);
  while ((ended = sys(WAIT4, -1, &status, 0, 0)) != pid) {
    /* PID 1 of the sandbox is of our process group too. */
    if (ended == server.pid) sys(KILL, 0, KILLED, 0, 0);
  }
  sys(EXIT_GROUP, status & 127 ? 128 + (status & 127) : status >> 8 & 255, 0, 0, 0);
}

void begin(long *stack) {
  char **argv = (char **)(stack + 1), **environment = argv + stack[0] + 1;
  static char options[96];
  u64 uid = sys(GETUID, 0, 0, 0, 0), gid = sys(GETGID, 0, 0, 0, 0);
  if (stack[0] < 8) sys(EXIT_GROUP, 2, 0, 0, 0);
  /* A process group to be killed with us; who detached us has made it already. */
  sys(SETSID, 0, 0, 0, 0);
  check(sys(UNSHARE, NEW_USER | NEW_MOUNTS, 0, 0, 0), "a user namespace");
  write_file("/proc/self/setgroups", "deny");
  map("/proc/self/uid_map", uid);
  map("/proc/self/gid_map", gid);
  sys(UMASK, 0, 0, 0, 0);
  /* As many names as pages: an empty file takes none of the RAM disk's bytes, but a kilobyte of the kernel's. */
  append_number(append(append(append(options, "mode=755,size="), argv[3]), ",nr_inodes="), number(argv[3]) / PAGE_BYTES);
  mount("none", argv[1], "tmpfs", NOSUID | NODEV, options, "a RAM disk");
  check(sys(CHDIR, argv[1], 0, 0, 0), "its folder");
  for (const char **path = skeleton; *path; path++) folder(*path, 0755);
  folder("mask", 0755);
  for (const char **path = hooks; *path; path++) check(sys(MKNOD, *path, WHITEOUT, 0, 0), *path);
  folder("root", 0755), folder("image", 0755), folder("layer", 0755);
  folder("tmp", 01777), folder("var_tmp", 01777), folder("shm", 01777), folder("dev", 0755);
  make_devices();
  struct server server = { 0, -1 };
  if (*argv[5]) server = serve(argv, environment, uid, gid);
  else mount(argv[2], "image", 0, BIND | RECURSIVE, 0, "the image's bind mount");
  long pid = sys(FORK, 0, 0, 0, 0);
  check(pid, "fork");
  if (pid == 0) start(argv, environment);
  keep(pid, server);
}
