//! Names of branches for ids and tags, whatever those hold.

/// The longest name that is written out; file systems allow 255 bytes, and git adds `.lock`.
const LONGEST: usize = 120;

/// Whether names that differ only in case are the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// They are two.
    Differs,
    /// They are one.
    Ignored,
}

/// One component of a ref's name for an id. Different ids get different names; an id that can
/// be a name is its own.
///
/// Everything else is written as `=` and two hexadecimal digits, which no plain id holds.
pub fn ref_name(id: &str, case: Case) -> String {
    let plain = |byte: u8| {
        let upper = byte.is_ascii_uppercase() && case == Case::Ignored;
        !upper && (byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let bytes = id.as_bytes();
    let last = bytes.len().saturating_sub(1);
    let lock = bytes.len().saturating_sub(".lock".len());
    let ends_in_lock = id.to_ascii_lowercase().ends_with(".lock");
    let mut name = String::with_capacity(id.len());
    for (at, byte) in bytes.iter().copied().enumerate() {
        // A name may not begin or end with a dot, hold two in a row or end in `.lock`; one that
        // begins with a dash reads as an option.
        let odd = match byte {
            b'.' => at == 0 || at == last || bytes[at - 1] == b'.' || (ends_in_lock && at == lock),
            b'-' => at == 0,
            _ => false,
        };
        match plain(byte) && !odd {
            true => name.push(char::from(byte)),
            false => name.push_str(&format!("={byte:02X}")),
        }
    }
    match name.len() {
        0 => "=".to_owned(),
        1..=LONGEST => name,
        _ => {
            let head: String = name.chars().take(40).collect();
            format!("{head}=={:032x}", fnv128(bytes))
        }
    }
}

/// FNV-1a over 128 bits.
fn fnv128(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_can_be_a_name_is_its_own() {
        for id in [
            "1",
            "1.10",
            "auth:1".trim_end_matches(":1"),
            "fetch_data",
            "A-b",
            "x-",
        ] {
            assert_eq!(ref_name(id, Case::Differs), id);
        }
    }

    #[test]
    fn ids_that_no_branch_can_have_are_written_otherwise() {
        let table = [
            ("yarn.lock", "yarn=2Elock"),
            ("a.LOCK", "a=2ELOCK"),
            ("v1..v2", "v1.=2Ev2"),
            ("a//b", "a=2F=2Fb"),
            ("@", "=40"),
            ("end.", "end=2E"),
            (".hidden", "=2Ehidden"),
            ("-x", "=2Dx"),
            ("a b", "a=20b"),
            ("a~^:?*[\\", "a=7E=5E=3A=3F=2A=5B=5C"),
            ("=ready", "=3Dready"),
            ("ä", "=C3=A4"),
            ("", "="),
        ];
        for (id, name) in table {
            assert_eq!(ref_name(id, Case::Differs), name, "{id}");
        }
    }

    #[test]
    fn different_ids_have_different_names() {
        let mut ids: Vec<String> = [
            "a.b",
            "a..b",
            "a=2Eb",
            "a=b",
            "a b",
            "a-b",
            "a_b",
            "a/b",
            ".",
            "..",
            "...",
            "",
            "=",
            "A",
            "a",
            "lock",
            ".lock",
            "x.lock",
            "x.lock.lock",
            "x.lock.",
        ]
        .map(str::to_owned)
        .to_vec();
        ids.extend((1..5).map(|n| "long".repeat(60) + &n.to_string()));
        for case in [Case::Differs, Case::Ignored] {
            let fold = |name: String| match case {
                Case::Differs => name,
                Case::Ignored => name.to_lowercase(),
            };
            let names: std::collections::HashSet<String> =
                ids.iter().map(|id| fold(ref_name(id, case))).collect();
            assert_eq!(names.len(), ids.len(), "{case:?}");
            assert!(names.iter().all(|name| name.len() < 200));
        }
    }
}
