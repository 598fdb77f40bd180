/*
 * Preloaded into the service: the wall clock is as many seconds ahead as the 8 bytes of JUMP_FILE say, which may
 * change at any moment. The monotonic clocks stay as they are, as they do when somebody sets a machine's clock. Waits
 * until a moment of the wall clock are told the kernel by its own, or they would end hours late or never begin.
 * Needs no libc, so that any C compiler builds it: cc -shared -fPIC -nostdlib -DJUMP_FILE='"PATH"'
 */
asm(".globl jump_call\n.hidden jump_call\njump_call: movq %rdi, %rax\n movq %rsi, %rdi\n movq %rdx, %rsi\n"
    " movq %rcx, %rdx\n syscall\n ret\n");
long jump_call(long number, long a, long b, long c);

enum { READ = 0, OPEN = 2, CLOSE = 3, CLOCK_GETTIME = 228, REALTIME = 0, REALTIME_COARSE = 5, CLOEXEC = 02000000 };

struct seconds { long s, rest; };

static long ahead_s(void) {
  long ahead = 0, fd = jump_call(OPEN, (long)JUMP_FILE, CLOEXEC, 0);
  if (fd < 0) return 0;
  if (jump_call(READ, fd, (long)&ahead, sizeof ahead) != sizeof ahead) ahead = 0;
  jump_call(CLOSE, fd, 0, 0);
  return ahead;
}

int clock_gettime(int clock, struct seconds *now) {
  if (jump_call(CLOCK_GETTIME, clock, (long)now, 0)) return -1;
  if (clock == REALTIME || clock == REALTIME_COARSE) now->s += ahead_s();
  return 0;
}

int gettimeofday(struct seconds *now, void *zone) {
  (void)zone;
  clock_gettime(REALTIME, now);
  now->rest /= 1000;
  return 0;
}

void *dlvsym(void *from, const char *name, const char *version);

/* Which clock a condition goes by is not to be seen; the monotonic one began when the machine did. */
static const struct seconds *kernels(const struct seconds *until, struct seconds *own) {
  if (until->s < 1000000000) return until;
  own->s = until->s - ahead_s();
  own->rest = until->rest;
  return own;
}

int pthread_cond_timedwait(void *condition, void *mutex, const struct seconds *until) {
  static int (*wait)(void *, void *, const struct seconds *);
  struct seconds own;
  if (!wait) wait = dlvsym((void *)-1, "pthread_cond_timedwait", "GLIBC_2.3.2");
  return wait(condition, mutex, kernels(until, &own));
}
