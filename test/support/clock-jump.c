/*
 * Preloaded into the service: the wall clock is as many seconds ahead as the 8 bytes of JUMP_FILE say, which may
 * change at any moment. The monotonic clocks stay as they are, as they do when somebody sets a machine's clock.
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
