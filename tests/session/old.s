# Reads the terminal once with the system call of a 32-bit program.
.globl _start
_start:
    mov $3, %eax
    xor %ebx, %ebx
    mov $buffer, %ecx
    mov $16, %edx
    int $0x80
    mov $1, %eax
    xor %ebx, %ebx
    int $0x80
.bss
buffer: .skip 16
