//! A filter of system calls, as the kernel takes it: a short program that is run for each call. At the start the
//! kernel runs it once for every call there is, so each instruction costs every run of an agent.

use std::collections::BTreeMap;
use std::io;

use nix::libc::{self, c_long};
use seccompiler::{BpfProgram, sock_filter};

/// Where the kernel shows a call: its number, the processor's interface, and six arguments.
const NUMBER: u32 = 0;
const INTERFACE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

/// Numbers from here on are calls of the x32 interface, which no program needs.
const X32: u32 = 0x4000_0000;

/// What an argument of a call is looked at for; of wide ones the lower half, as the kernel does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    /// It is this value.
    Is(u32, u32),
    /// It has one of these bits.
    Has(u32, u32),
    /// These bits of it are this value.
    Masked(u32, u32, u32),
}

/// Refuses calls; what is not refused is allowed.
pub(crate) struct CallFilter {
    /// What comes before the number of the call is looked at.
    head: Steps,
    /// For each call that may be refused what finds that out, and ends where it is.
    calls: BTreeMap<u32, Steps>,
}

impl CallFilter {
    /// Refuses calls through interfaces of other processors and of x32.
    pub(crate) fn new() -> io::Result<Self> {
        let unknown = || io::Error::other("seccomp is not known for this processor");
        let own = interface(std::env::consts::ARCH).ok_or_else(unknown)?;
        let mut head = Steps::default();
        head.load(INTERFACE);
        head.jump(libc::BPF_JEQ, own, 1, 0);
        head.end(libc::SECCOMP_RET_KILL_PROCESS);
        head.load(NUMBER);
        if cfg!(target_arch = "x86_64") {
            head.jump(libc::BPF_JGE, X32, 0, 1);
            head.refuse_here(libc::ENOSYS);
        }
        let calls = BTreeMap::new();
        Ok(Self { head, calls })
    }

    /// Refuses a call, whatever its arguments.
    pub(crate) fn refuse(&mut self, call: c_long, errno: i32) {
        self.of_call(call).refuse_here(errno);
    }

    /// Refuses a call for which all of one of these lists holds.
    pub(crate) fn refuse_when(
        &mut self,
        call: c_long,
        lists: &[&[Argument]],
        errno: i32,
    ) -> io::Result<()> {
        let mut checks = Steps::default();
        for list in lists {
            checks.check_all(list, errno)?;
        }
        self.of_call(call).0.extend(checks.0);
        Ok(())
    }

    /// The whole program.
    pub(crate) fn program(self) -> io::Result<BpfProgram> {
        let mut program = self.head;
        let calls: Vec<(u32, Steps)> = self.calls.into_iter().collect();
        program.0.extend(search(&calls)?.0);
        Ok(program.0)
    }

    /// What was asked for before comes first.
    fn of_call(&mut self, call: c_long) -> &mut Steps {
        self.calls.entry(number(call)).or_default()
    }
}

/// Finds the steps of a call by halves of the sorted numbers: one after the other, all of them together would
/// take about a third of a millisecond at each start.
fn search(calls: &[(u32, Steps)]) -> io::Result<Steps> {
    let mut found = Steps::default();
    match calls {
        [] => found.end(libc::SECCOMP_RET_ALLOW),
        [(call, steps)] => {
            found.jump(libc::BPF_JEQ, *call, 0, steps.jump_over()?);
            found.0.extend_from_slice(&steps.0);
            found.end(libc::SECCOMP_RET_ALLOW);
        }
        _ => {
            let (low, high) = calls.split_at(calls.len() / 2);
            let below = search(low)?;
            let first = high.first().map_or(u32::MAX, |(call, _)| *call);
            found.jump(libc::BPF_JGE, first, below.jump_over()?, 0);
            found.0.extend(below.0);
            found.0.extend(search(high)?.0);
        }
    }
    Ok(found)
}

/// A part of the program.
#[derive(Default)]
struct Steps(BpfProgram);

impl Steps {
    /// Refuses where all of these hold, and goes on behind where one does not.
    fn check_all(&mut self, list: &[Argument], errno: i32) -> io::Result<()> {
        let Some((first, rest)) = list.split_first() else {
            self.refuse_here(errno);
            return Ok(());
        };
        let mut then = Self::default();
        then.check_all(rest, errno)?;
        let length = then.jump_over()?;
        let (Argument::Is(at, _) | Argument::Has(at, _) | Argument::Masked(at, ..)) = *first;
        self.load(FIRST_ARGUMENT + 8 * at);
        match *first {
            Argument::Is(_, value) => self.jump(libc::BPF_JEQ, value, 0, length),
            Argument::Has(_, bits) => self.jump(libc::BPF_JSET, bits, 0, length),
            Argument::Masked(_, mask, value) => {
                self.add(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, mask);
                self.jump(libc::BPF_JEQ, value, 0, length);
            }
        }
        self.0.extend(then.0);
        Ok(())
    }

    /// How far a jump over all of it goes. One that was cut short would allow what is to be refused.
    fn jump_over(&self) -> io::Result<u8> {
        let too_far = |_| io::Error::other("a check of system calls is too long for one jump");
        u8::try_from(self.0.len()).map_err(too_far)
    }

    fn load(&mut self, offset: u32) {
        self.add(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    }

    fn jump(&mut self, how: u32, value: u32, when_true: u8, when_false: u8) {
        let code = libc::BPF_JMP | how | libc::BPF_K;
        self.add(code, when_true, when_false, value);
    }

    fn refuse_here(&mut self, errno: i32) {
        self.end(libc::SECCOMP_RET_ERRNO | errno.cast_unsigned());
    }

    fn end(&mut self, with: u32) {
        self.add(libc::BPF_RET | libc::BPF_K, 0, 0, with);
    }

    fn add(&mut self, code: u32, jt: u8, jf: u8, k: u32) {
        // All codes are small.
        let code = u16::try_from(code).unwrap_or(u16::MAX);
        self.0.push(sock_filter { code, jt, jf, k });
    }
}

/// The kernel's name for the interface of 64-bit programs.
fn interface(processor: &str) -> Option<u32> {
    const LITTLE_64_BIT: u32 = 0xc000_0000;
    let machine = match processor {
        "x86_64" => 62,
        "aarch64" => 183,
        "riscv64" => 243,
        _ => return None,
    };
    Some(machine | LITTLE_64_BIT)
}

/// Calls have small numbers.
fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a filter says to a call, as the kernel would find out.
    pub(crate) fn answer(program: &[sock_filter], interface: u32, call: u32, args: &[u32]) -> u32 {
        answer_after(program, interface, call, args).0
    }

    /// The same with the number of steps.
    pub(crate) fn answer_after(
        program: &[sock_filter],
        interface: u32,
        call: u32,
        args: &[u32],
    ) -> (u32, usize) {
        let (mut at, mut value) = (0, 0);
        for steps in 1.. {
            let step = &program[at];
            let code = u32::from(step.code);
            at += 1;
            match code & 7 {
                libc::BPF_LD => {
                    value = match step.k {
                        NUMBER => call,
                        INTERFACE => interface,
                        offset => {
                            let argument = (offset - FIRST_ARGUMENT) / 8;
                            args.get(argument as usize).copied().unwrap_or(0)
                        }
                    }
                }
                libc::BPF_ALU => value &= step.k,
                libc::BPF_JMP => {
                    let holds = match code & 0xf0 {
                        libc::BPF_JEQ => value == step.k,
                        libc::BPF_JGE => value >= step.k,
                        libc::BPF_JSET => value & step.k != 0,
                        other => panic!("no such jump: {other:#x}"),
                    };
                    at += usize::from(if holds { step.jt } else { step.jf });
                }
                libc::BPF_RET => return (step.k, steps),
                other => panic!("no such instruction: {other}"),
            }
        }
        unreachable!("a program has an end")
    }

    pub(crate) fn own_interface() -> u32 {
        interface(std::env::consts::ARCH).unwrap()
    }

    #[test]
    fn calls_are_refused_by_number_and_by_what_their_arguments_say() {
        let mut filter = CallFilter::new().unwrap();
        filter.refuse(7, libc::EPERM);
        let socket: [&[Argument]; 4] = [
            &[Argument::Is(0, 40)],
            &[Argument::Is(0, 16), Argument::Is(2, 12)],
            &[Argument::Masked(1, 0xf, 3), Argument::Is(0, 2)],
            &[Argument::Has(1, 0x60)],
        ];
        filter.refuse_when(9, &socket, libc::EACCES).unwrap();
        filter.refuse(11, libc::ENOSYS);
        let program = filter.program().unwrap();
        let allowed = libc::SECCOMP_RET_ALLOW;
        let refused = |errno: i32| libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
        let rows = [
            (6, &[0, 0, 0][..], allowed),
            (7, &[0, 0, 0], refused(libc::EPERM)),
            (9, &[40, 0, 0], refused(libc::EACCES)),
            (9, &[16, 0, 12], refused(libc::EACCES)),
            (9, &[16, 0, 0], allowed),
            (9, &[2, 0, 12], allowed),
            (9, &[2, 0x40, 0], refused(libc::EACCES)),
            (9, &[2, 0x83, 0], refused(libc::EACCES)),
            (9, &[16, 0x83, 0], allowed),
            (9, &[2, 1, 0], allowed),
            (11, &[0], refused(libc::ENOSYS)),
            (12, &[40, 3, 12], allowed),
        ];
        for (call, args, wanted) in rows {
            let found = answer(&program, own_interface(), call, args);
            assert_eq!(found, wanted, "{call} {args:?}");
        }
        let other = answer(&program, own_interface() ^ 1, 6, &[]);
        assert_eq!(other, libc::SECCOMP_RET_KILL_PROCESS);
        if cfg!(target_arch = "x86_64") {
            let x32 = answer(&program, own_interface(), X32 + 6, &[]);
            assert_eq!(x32, refused(libc::ENOSYS));
        }
    }
    #[test]
    fn a_check_that_is_too_long_for_a_jump_is_an_error_and_never_cut_short() {
        let mut filter = CallFilter::new().unwrap();
        let too_many = [&[Argument::Is(0, 1)][..]; 100];
        filter.refuse_when(10, &too_many, libc::EPERM).unwrap();
        assert!(filter.program().is_err());
    }
}
