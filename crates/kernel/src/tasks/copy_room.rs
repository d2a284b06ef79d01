//! Whether there is room on a disk for what is about to be copied there.

/// What is left on a disk for others, where it is a large one.
const MARGIN: u64 = 1024 * 1024 * 1024;
/// What is so small is copied to the last byte: an `.env` fills no disk.
const SMALL: u64 = 1024 * 1024;

/// Whether so many bytes may be copied to a disk with so many free ones of so many.
pub fn has_room(bytes: u64, free: u64, whole: u64) -> bool {
    let margin = match bytes <= SMALL {
        true => 0,
        false => MARGIN.min(whole / 10),
    };
    bytes
        .checked_add(margin)
        .is_some_and(|needed| needed <= free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_leaves_a_clear_margin() {
        const GB: u64 = 1 << 30;
        let table = [
            // Bytes, free, whole.
            (10 * GB, 100 * GB, 500 * GB, true),
            (10 * GB, 11 * GB, 500 * GB, true),
            (10 * GB, 11 * GB - 1, 500 * GB, false),
            (300 * GB, 100 * GB, 500 * GB, false),
            // A small disk keeps a tenth.
            (GB / 2, GB, 4 * GB, true),
            (GB, GB, 4 * GB, false),
            (4096, 4096, 500 * GB, true),
            (4097, 4096, 500 * GB, false),
            (u64::MAX, u64::MAX, u64::MAX, false),
        ];
        for (bytes, free, whole, fits) in table {
            assert_eq!(has_room(bytes, free, whole), fits, "{bytes} {free} {whole}");
        }
    }
}
