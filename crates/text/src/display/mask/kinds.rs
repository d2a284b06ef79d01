//! Secrets that are known by how they begin.

/// How a secret begins and what it is made of.
pub(super) struct SecretKind {
    pub(super) prefix: &'static [u8],
    /// Fewer characters behind the prefix are a word, not a secret.
    least: usize,
    pub(super) holds: fn(u8) -> bool,
}

/// So much of a secret is looked at.
const LOOKED_AT: usize = 72;

pub(super) fn of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Words joined by dots.
fn dotted(byte: u8) -> bool {
    of_word(byte) || byte == b'.'
}

/// Words joined by slashes.
fn path(byte: u8) -> bool {
    of_word(byte) || byte == b'/'
}

const fn kind(prefix: &'static str, least: usize, holds: fn(u8) -> bool) -> SecretKind {
    SecretKind {
        prefix: prefix.as_bytes(),
        least,
        holds,
    }
}

/// Sorted by the first byte; of two that fit, the longer stands first.
const KINDS: &[SecretKind] = &[
    kind("A3-", 30, of_word),
    kind("ABIA", 16, capital),
    kind("ABSK", 100, base64),
    kind("ACCA", 16, capital),
    kind("AGE-SECRET-KEY-1", 50, capital),
    kind("AIza", 30, of_word),
    kind("AKCp", 60, alphanumeric),
    kind("AKIA", 16, capital),
    kind("ASIA", 16, capital),
    kind("ATATT3", 60, of_word),
    kind("ATBB", 32, alphanumeric),
    kind("CCIPAT_", 30, of_word),
    kind("CLOJARS_", 50, alphanumeric),
    kind("EZAK", 50, alphanumeric),
    kind("EZTK", 50, alphanumeric),
    kind("GOCSPX-", 24, of_word),
    kind("GR1348941", 20, of_word),
    kind("HRKU-AA", 40, of_word),
    kind("LTAI", 20, alphanumeric),
    kind("NRAK-", 27, capital),
    kind("PMAK-", 40, of_word),
    kind("SG.", 60, dotted),
    kind("SK", 32, hex),
    kind("api_org_", 30, alphanumeric),
    kind("bkua_", 30, hex),
    kind("cmVmd", 59, alphanumeric),
    kind("csk-", 40, alphanumeric),
    kind("dapi", 32, hex),
    kind("dckr_oat_", 27, of_word),
    kind("dckr_pat_", 27, of_word),
    kind("discord.com/api/webhooks/", 60, path),
    kind("discordapp.com/api/webhooks/", 60, path),
    kind("doo_v1_", 60, hex),
    kind("dop_v1_", 60, hex),
    kind("dor_v1_", 60, hex),
    kind("dp.audit.", 40, alphanumeric),
    kind("dp.ct.", 40, alphanumeric),
    kind("dp.pt.", 40, alphanumeric),
    kind("dp.sa.", 40, alphanumeric),
    kind("dp.scim.", 40, alphanumeric),
    kind("dp.st.", 40, dotted),
    kind("dt0c01.", 60, dotted),
    kind("duffel_live_", 40, of_word),
    kind("e2b_", 40, hex),
    kind("fc-", 32, hex),
    kind("figd_", 38, of_word),
    kind("fio-u-", 60, of_word),
    kind("fm1a_", 60, base64),
    kind("fm1r_", 60, base64),
    kind("fm2_", 60, base64),
    kind("fo1_", 43, of_word),
    kind("gho_", 16, alphanumeric),
    kind("ghp_", 16, alphanumeric),
    kind("ghr_", 16, alphanumeric),
    kind("ghs_", 16, dotted),
    kind("ghu_", 16, alphanumeric),
    kind("github_pat_", 16, of_word),
    kind("glagent-", 16, dotted),
    kind("glc_", 32, base64),
    kind("glcbt-", 16, dotted),
    kind("gldt-", 16, dotted),
    kind("glffct-", 16, dotted),
    kind("glft-", 16, dotted),
    kind("glimt-", 16, dotted),
    kind("gloas-", 16, dotted),
    kind("glpat-", 16, dotted),
    kind("glptt-", 16, dotted),
    kind("glrt-", 16, dotted),
    kind("glsa_", 32, of_word),
    kind("glsoat-", 16, dotted),
    kind("glwt-", 16, dotted),
    kind("gsk_", 40, alphanumeric),
    kind("hf_", 30, alphanumeric),
    kind("hooks.slack.com/services/", 20, path),
    kind("hooks.slack.com/triggers/", 20, path),
    kind("hooks.slack.com/workflows/", 20, path),
    kind("hvb.", 24, of_word),
    kind("hvr.", 24, of_word),
    kind("hvs.", 24, of_word),
    kind("lin_api_", 30, alphanumeric),
    kind("lin_oauth_", 30, alphanumeric),
    kind("lsv2_pt_", 30, of_word),
    kind("lsv2_sk_", 30, of_word),
    kind("napi_", 40, alphanumeric),
    kind("nfp_", 36, alphanumeric),
    kind("npm_", 36, alphanumeric),
    kind("ntn_", 40, alphanumeric),
    kind("nvapi-", 50, of_word),
    kind("ops_eyJ", 60, base64),
    kind("phx_", 36, alphanumeric),
    kind("pnu_", 36, alphanumeric),
    kind("pplx-", 40, alphanumeric),
    kind("pscale_oauth_", 32, dotted),
    kind("pscale_pw_", 32, dotted),
    kind("pscale_tkn_", 32, dotted),
    kind("pul-", 40, hex),
    kind("pypi-Ag", 50, of_word),
    kind("r8_", 36, of_word),
    kind("rdme_", 70, alphanumeric),
    kind("rk_live_", 16, alphanumeric),
    kind("rk_test_", 16, alphanumeric),
    kind("rubygems_", 48, hex),
    kind("sb_secret_", 20, of_word),
    kind("sbp_", 40, hex),
    kind("secret-token:", 16, dotted),
    kind("shippo_live_", 40, hex),
    kind("shpat_", 32, hex),
    kind("shpca_", 32, hex),
    kind("shppa_", 32, hex),
    kind("shpss_", 32, hex),
    kind("sk-ant-", 8, of_word),
    kind("sk-admin-", 20, of_word),
    kind("sk-lf-", 20, of_word),
    kind("sk-or-v1-", 20, of_word),
    kind("sk-proj-", 20, of_word),
    kind("sk-svcacct-", 20, of_word),
    kind("sk-", 20, alphanumeric),
    kind("sk_live_", 16, alphanumeric),
    kind("sk_test_", 16, alphanumeric),
    kind("sntrys_", 40, base64),
    kind("sntryu_", 40, hex),
    kind("sq0atp-", 22, of_word),
    kind("sq0csp-", 40, of_word),
    kind("tfp_", 40, of_word),
    kind("tskey-", 20, of_word),
    kind("tvly-", 30, of_word),
    kind("whsec_", 20, base64),
    kind("xai-", 60, alphanumeric),
    kind("xapp-", 20, of_word),
    kind("xkeysib-", 60, of_word),
    kind("xoxa-", 10, of_word),
    kind("xoxb-", 10, of_word),
    kind("xoxc-", 10, of_word),
    kind("xoxd-", 10, of_word),
    kind("xoxe-", 10, of_word),
    kind("xoxe.", 20, dotted),
    kind("xoxo-", 10, of_word),
    kind("xoxp-", 10, of_word),
    kind("xoxr-", 10, of_word),
    kind("xoxs-", 10, of_word),
    kind("ya29.", 30, dotted),
];

/// Where in the table the kinds of a first byte begin and end.
const RANGES: [(u8, u8); 256] = ranges();

const fn ranges() -> [(u8, u8); 256] {
    let mut ranges = [(0, 0); 256];
    let mut at = 0;
    while at < KINDS.len() {
        let first = KINDS[at].prefix[0] as usize;
        if ranges[first].1 == 0 {
            ranges[first].0 = at as u8;
        }
        at += 1;
        ranges[first].1 = at as u8;
    }
    ranges
}

/// Whether a secret may begin with this byte.
pub(super) const fn may_begin(first: u8) -> bool {
    RANGES[first as usize].1 > 0
}

/// What a word is.
pub(super) enum Fit {
    /// A secret: so many bytes may be shown, so many more are known to belong to it.
    Secret(usize, usize, fn(u8) -> bool),
    /// It may become one.
    Open,
    None,
}

/// Looks at a word from its beginning on.
pub(super) fn fit(rest: &[u8], at_end: bool) -> Fit {
    let Some(first) = rest.first() else {
        return Fit::None;
    };
    let (from, to) = RANGES[*first as usize];
    for kind in &KINDS[from as usize..to as usize] {
        let Some(body) = rest.strip_prefix(kind.prefix) else {
            if !at_end && kind.prefix.starts_with(rest) {
                return Fit::Open;
            }
            continue;
        };
        let looked_at = &body[..body.len().min(LOOKED_AT.max(kind.least))];
        let run = looked_at.iter().take_while(|byte| (kind.holds)(**byte));
        let run = run.count();
        if run == body.len() && run < LOOKED_AT.max(kind.least) && !at_end {
            return Fit::Open;
        }
        // A word made of words has no digits; a secret has.
        if run >= kind.least && body[..run].iter().any(u8::is_ascii_digit) {
            return Fit::Secret(kind.prefix.len(), run, kind.holds);
        }
    }
    Fit::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_short_enough() {
        assert!(KINDS.len() < 256);
        for pair in KINDS.windows(2) {
            let [one, two] = pair else { unreachable!() };
            assert!(one.prefix[0] <= two.prefix[0], "{:?}", two.prefix);
            assert!(!two.prefix.starts_with(one.prefix), "{:?}", two.prefix);
        }
    }
}
