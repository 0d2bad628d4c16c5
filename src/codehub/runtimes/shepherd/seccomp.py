"""Which system calls a workspace cannot make: a filter for the kernel, assembled here byte by byte.

Refused is what only an administrator needs, what has been a way out of sandboxes (nested user namespaces, io_uring,
bpf, keys, userfaultfd), what takes disk faster than it can be watched (preallocation), and what the whole machine has
one table of (`io_setup`; programs do without). Everything else is as everywhere: IDEs, compilers, debuggers of one's
own processes and Node work. `namespaces` and `enter` load it, bubblewrap is given it, `runtimes.limits` asks whether
this machine has one.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from codehub.runtimes.shepherd.shares import NESTED
from codehub.system import kernel

# Instructions of the kernel's packet filter.
_LOAD, _EQUAL, _GREATER_OR_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where they lie in what the filter is shown
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _FILTER = 21, 22, 2
_SECOND_ABI = 0x40000000  # x32: the same machine, other numbers; nobody needs it

_X86_64, _I386, _AARCH64, _ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028
NEW_NAMESPACES = 0x7E020000
NEW_TIME_NAMESPACE = 0x80  # not for `clone`, where these bits are a signal
# Pushing characters into a terminal, and preallocation by its other doors (the last three as 32-bit programs say it).
IOCTLS = (0x5412, 0x541C, 0x40305828, 0x4030582A, 0x40305839, 0x402C5828, 0x402C582A, 0x402C5839)
FAMILIES = (0, 1, 2, 10, 16)  # unspecified, Unix, IPv4, IPv6, netlink (for the addresses one has)
PERSONALITIES = (0, 8, 0x20000, 0x20008, 0x40000, 0x40008, 0xFFFFFFFF)  # 0x40000: debuggers, for the same addresses
PUNCH, COLLAPSE = 0x02, 0x08  # kinds of `fallocate` that take no disk

# (name, x86-64, i386, arm64); None: there is none.
_NEVER_EPERM = """
    bpf 321 357 280|perf_event_open 298 336 241|userfaultfd 323 374 282|kexec_load 246 283 104|kexec_file_load 320 - 294
    init_module 175 128 105|finit_module 313 350 273|delete_module 176 129 106|reboot 169 88 142|swapon 167 87 224
    swapoff 168 115 225|acct 163 51 89|quotactl 179 131 60|quotactl_fd 443 443 443|syslog 103 103 116
    settimeofday 164 79 170|stime - 25 -|clock_settime 227 264 112|clock_settime64 - 404 -
    iopl 172 110 -|ioperm 173 101 -|vm86 - 166 -|vm86old - 113 -
    lookup_dcookie 212 253 18|open_by_handle_at 304 342 265|fanotify_init 300 338 262
    nfsservctl 180 169 42|uselib 134 86 -|vhangup 153 111 58|move_pages 279 317 239|migrate_pages 256 294 238
"""
_NEVER_ENOSYS = """
    io_uring_setup 425 425 425|io_uring_enter 426 426 426|io_uring_register 427 427 427|add_key 248 286 217
    request_key 249 287 218|keyctl 250 288 219|memfd_secret 447 447 447|socketcall - 102 -|io_setup 206 245 0
"""
_NESTED_EPERM = """
    setns 308 346 268|mount 165 21 40|umount - 22 -|umount2 166 52 39|pivot_root 155 217 41|chroot 161 61 51
    open_tree 428 428 428|move_mount 429 429 429|fsopen 430 430 430|fsconfig 431 431 431|fsmount 432 432 432
    fspick 433 433 433|mount_setattr 442 442 442|open_tree_attr 467 467 467
"""
_BY_ARGUMENT = """
    unshare 272 310 97|clone 56 120 220|clone3 435 435 435|ioctl 16 54 29|socket 41 359 198|personality 135 136 92
    fallocate 285 324 47
"""


@dataclass(frozen=True)
class _Step:
    code: int
    value: int
    then: int = 0
    otherwise: int = 0


def _table(text: str, column: int) -> dict[str, int]:
    rows = [row.split() for line in text.splitlines() for row in line.split("|") if row.strip()]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def program(machine: str, kind: str) -> bytes | None:
    """The filter for this machine; None where we do not know its numbers."""
    if machine == "x86_64":
        first, second = (_X86_64, _rules(1, kind)), (_I386, _rules(2, kind))
    elif machine == "aarch64":
        first, second = (_AARCH64, _rules(3, kind)), (_ARM, [_refuse(errno.ENOSYS)])
    else:
        return None
    steps = [_Step(_LOAD, _ARCHITECTURE)]
    for architecture, rules in (first, second):
        # A jump is at most 255 far by its own, so the way past the rules is a step of its own.
        steps += [_Step(_EQUAL, architecture, 1, 0), _Step(0x05, len(rules)), *rules]
    return b"".join(struct.pack("=HBBI", s.code, s.then, s.otherwise, s.value) for s in [*steps, _refuse(errno.ENOSYS)])


def _refuse(number: int) -> _Step:
    return _Step(_RETURN, _REFUSE | number)


def _rules(column: int, kind: str) -> list[_Step]:
    steps = [_Step(_LOAD, _NUMBER)]
    if column == 1:
        steps += [_Step(_GREATER_OR_EQUAL, _SECOND_ABI, 0, 1), _refuse(errno.ENOSYS)]
    refused = dict.fromkeys(_table(_NEVER_EPERM, column).values(), errno.EPERM)
    refused |= dict.fromkeys(_table(_NEVER_ENOSYS, column).values(), errno.ENOSYS)
    by_argument = _table(_BY_ARGUMENT, column)
    if kind != NESTED:
        refused |= dict.fromkeys(_table(_NESTED_EPERM, column).values(), errno.EPERM)
        # Its flags lie in memory, where a filter cannot look; C libraries go on with `clone`.
        refused[by_argument["clone3"]] = errno.ENOSYS
    for number, error in refused.items():
        steps += [_Step(_EQUAL, number, 0, 1), _refuse(error)]
    return [*steps, *_looking_closer(by_argument, kind), _Step(_RETURN, _ALLOW)]


def _looking_closer(numbers: dict[str, int], kind: str) -> list[_Step]:
    """Calls that are refused for what they ask. Only the lower half of an argument counts: the kernel sees no more."""
    steps = []
    if kind != NESTED:
        steps += _when(numbers["unshare"], 0, _ANY_BIT, [NEW_NAMESPACES | NEW_TIME_NAMESPACE], errno.EPERM)
        steps += _when(numbers["clone"], 0, _ANY_BIT, [NEW_NAMESPACES], errno.EPERM)
    steps += _when(numbers["ioctl"], 1, _EQUAL, IOCTLS, errno.EPERM)
    steps += _unless(numbers["socket"], 0, _EQUAL, FAMILIES, errno.EAFNOSUPPORT)
    steps += _unless(numbers["personality"], 0, _EQUAL, PERSONALITIES, errno.EPERM)
    return steps + _unless(numbers["fallocate"], 1, _ANY_BIT, [PUNCH | COLLAPSE], errno.EOPNOTSUPP)


def _when(number: int, argument: int, test: int, values: Iterable[int], error: int) -> list[_Step]:
    body = [_Step(_LOAD, _ARGUMENTS + 8 * argument)]
    for value in values:
        body += [_Step(test, value, 0, 1), _refuse(error)]
    return _only_for(number, [*body, _Step(_RETURN, _ALLOW)])


def _unless(number: int, argument: int, test: int, values: Iterable[int], error: int) -> list[_Step]:
    body = [_Step(_LOAD, _ARGUMENTS + 8 * argument)]
    for value in values:
        body += [_Step(test, value, 0, 1), _Step(_RETURN, _ALLOW)]
    return _only_for(number, [*body, _refuse(error)])


def _only_for(number: int, body: list[_Step]) -> list[_Step]:
    return [_Step(_EQUAL, number, 0, len(body)), *body]


def available() -> bool:
    """Has this kernel filters, and do we know its numbers?"""
    try:
        return kernel.prctl_value(_PR_GET_SECCOMP) >= 0 and program(os.uname().machine, "") is not None
    except OSError:
        return False


def load(kind: str) -> None:
    """For this process and all that come from it, for good. It must have given up its rights."""
    text = program(os.uname().machine, kind) if kind else None
    if text is None:
        return
    instructions = ctypes.create_string_buffer(text, len(text))
    described = struct.pack("HxxxxxxP", len(text) // 8, ctypes.addressof(instructions))
    buffer = ctypes.create_string_buffer(described, len(described))
    kernel.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.addressof(buffer))
