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
}

/// Reads `line` (without terminal sequences) while `open` is open.
pub(super) fn read(line: &[u8], open: Option<Fence>) -> Fencing {
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
        // Marks before and after on one line are a code span.
        None if mark == b'`' && info.contains(&b'`') => Fencing::Unchanged,
        None => Fencing::Opens(Fence { mark, count }),
    }
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
        assert_eq!(read(b"\t````` \0", four), Fencing::Closes);
        assert_eq!(
            open(b"~~~ a ` b"),
            Some(Fence {
                mark: b'~',
                count: 3
            })
        );
        assert_eq!(open(b"```code```"), None);
        assert_eq!(open(b"``"), None);
    }
}
