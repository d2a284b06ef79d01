//! A program that is nothing but a guard.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(u8::try_from(descartes_proc::guard_main()).unwrap_or(1))
}
