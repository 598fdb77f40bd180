/*
 * What the two programs in C share instead of a libc: the entry, system calls, and what compilers call by
 * themselves. Any C compiler for x86_64 Linux builds them (also tcc):
 *
 *   cc -static -nostdlib -O2 -fno-stack-protector -fno-builtin -o dist/NAME.bin src/sandbox/NAME.c
 *
 * A program defines `begin(stack)`: the number of arguments, the arguments, 0, the environment, 0.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

asm(".globl _start\n_start: xorl %ebp, %ebp\n movq %rsp, %rdi\n andq $-16, %rsp\n call begin\n"
    ".globl syscall6\nsyscall6: movq %rdi, %rax\n movq %rsi, %rdi\n movq %rdx, %rsi\n movq %rcx, %rdx\n"
    " movq %r8, %r10\n movq %r9, %r8\n movq 8(%rsp), %r9\n syscall\n ret\n"
    /* The compiler may call these two; both run forward, so that memcpy also moves bytes down. */
    ".globl memcpy\nmemcpy: movq %rdi, %rax\n movq %rdx, %rcx\n rep movsb\n ret\n"
    ".globl memset\nmemset: movq %rdi, %r8\n movl %esi, %eax\n movq %rdx, %rcx\n rep stosb\n movq %r8, %rax\n ret\n");

long syscall6(long number, long a, long b, long c, long d, long e, long f);
void *memcpy(void *to, const void *from, u64 bytes);
void *memset(void *to, int value, u64 bytes);
#define sys(n, a, b, c, d) syscall6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
