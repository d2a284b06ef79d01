//! Code fences: three or more marks at a line's start.

use super::chars::trim;

/// An open code fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: u8,
    count: usize,
}

/// What a line does to the fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fencing {
    /// Nothing: an ordinary line.
    Unchanged,
    /// It opens one.
    Opens(Fence),
    /// It closes the open one.
    Closes,
    /// It opens one and closes it again.
    OneLine,
}

/// Blanks that make a line's marks no fence any more.
const INDENT: usize = 4;

/// Reads `line` (without terminal sequences) while `open` is open.
pub(super) fn read(line: &[u8], open: Option<Fence>) -> Fencing {
    if indent(line) >= INDENT {
        return Fencing::Unchanged;
    }
    let line = trim(line);
    let Some((&mark @ (b'`' | b'~'), _)) = line.split_first() else {
        return Fencing::Unchanged;
    };
    let count = line.iter().take_while(|&&b| b == mark).count();
    let info = line.get(count..).unwrap_or_default();
    match open {
        _ if count < 3 => Fencing::Unchanged,
        Some(fence) if fence.mark == mark && count >= fence.count && info.is_empty() => {
            Fencing::Closes
        }
        Some(_) => Fencing::Unchanged,
        None if ends_with_marks(info, mark, count) => Fencing::OneLine,
        // Marks before and after on one line are a code span.
        None if mark == b'`' && info.contains(&b'`') => Fencing::Unchanged,
        None => Fencing::Opens(Fence { mark, count }),
    }
}

/// Columns of white space before the line's first ink; a tab goes to the next fourth.
fn indent(line: &[u8]) -> usize {
    let mut columns = 0;
    for byte in line {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += INDENT - columns % INDENT,
            _ => break,
        }
    }
    columns
}

/// Whether as many marks close the line as opened it, with something in between.
fn ends_with_marks(info: &[u8], mark: u8, count: usize) -> bool {
    let info = info.trim_ascii_end();
    let closing = info.iter().rev().take_while(|&&b| b == mark).count();
    closing >= count && closing < info.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_closed_by_its_own_kind_alone() {
        let open = |line: &[u8]| match read(line, None) {
            Fencing::Opens(fence) => Some(fence),
            _ => None,
        };
        let four = open(b"  ````md");
        assert_eq!(
            four,
            Some(Fence {
                mark: b'`',
                count: 4
            })
        );
        for line in [&b"```"[..], b"~~~~", b"````rust", b"text", b""] {
            assert_eq!(read(line, four), Fencing::Unchanged);
        }
        assert_eq!(read(b"   ````` \0", four), Fencing::Closes);
        assert_eq!(read(b"    `````", four), Fencing::Unchanged);
        assert_eq!(read(b"\t```", None), Fencing::Unchanged);
        assert_eq!(
            open(b"~~~ a ` b"),
            Some(Fence {
                mark: b'~',
                count: 3
            })
        );
        assert_eq!(open(b"```code```"), None);
        assert_eq!(read(b"``` code ```", None), Fencing::OneLine);
        assert_eq!(read(b"~~~ code ~~~ ", None), Fencing::OneLine);
        assert_eq!(read(b"```code``", None), Fencing::Unchanged);
        assert_eq!(open(b"``"), None);
    }
}
