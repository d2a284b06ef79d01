//! What is masked, and what must stay. The keys are made up.

use super::*;

fn mask(text: &str) -> String {
    let (mut mask, mut out) = (Mask::default(), Vec::new());
    mask.push(text.as_bytes(), &mut out);
    mask.finish(&mut out);
    let whole = String::from_utf8(out).unwrap();
    let (mut mask, mut out) = (Mask::default(), Vec::new());
    for byte in text.bytes() {
        mask.push(&[byte], &mut out);
    }
    mask.finish(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), whole, "byte by byte");
    whole
}

/// Letters and digits that mean nothing.
fn odd(length: usize) -> String {
    "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7xC0"
        .chars()
        .cycle()
        .take(length)
        .collect()
}

fn hex(length: usize) -> String {
    "3fa9c07be158d264".chars().cycle().take(length).collect()
}

#[test]
fn secrets_that_begin_in_a_known_way_are_masked_but_for_their_kind() {
    let (long, hex64) = (odd(90), hex(64));
    for (secret, shown) in [
        (format!("sk-ant-api03-{long}"), "sk-ant-***"),
        (format!("sk-proj-{long}"), "sk-proj-***"),
        (format!("sk-{}", odd(48)), "sk-***"),
        (format!("sk-or-v1-{hex64}"), "sk-or-v1-***"),
        (format!("ghp_{}", odd(36)), "ghp_***"),
        (format!("gho_{}", odd(36)), "gho_***"),
        (format!("ghs_{}", odd(36)), "ghs_***"),
        (
            format!("github_pat_{}_{}", odd(22), odd(59)),
            "github_pat_***",
        ),
        (format!("glpat-{}", odd(20)), "glpat-***"),
        (format!("glpat-{}.01.{}", odd(40), "0z1a2b3c4"), "glpat-***"),
        (format!("glrt-t1_{}", odd(30)), "glrt-***"),
        (format!("AIza{}", odd(35)), "AIza***"),
        (format!("ya29.{}", odd(60)), "ya29.***"),
        (format!("GOCSPX-{}", odd(28)), "GOCSPX-***"),
        ("AKIAIOSFODNN7QWERTYU".to_owned(), "AKIA***"),
        ("ASIAIOSFODNN7QWERTYU".to_owned(), "ASIA***"),
        (format!("npm_{}", odd(36)), "npm_***"),
        (format!("pypi-AgEIcHlwaS5vcmc{}", odd(80)), "pypi-Ag***"),
        (format!("sk_live_{}", odd(24)), "sk_live_***"),
        (format!("rk_live_{}", odd(24)), "rk_live_***"),
        (format!("whsec_{}", odd(32)), "whsec_***"),
        (format!("hf_{}", odd(34)), "hf_***"),
        (format!("xoxb-123456789012-{}", odd(24)), "xoxb-***"),
        (format!("xapp-1-A012-123-{hex64}"), "xapp-***"),
        (format!("SG.{}.{}", odd(22), odd(43)), "SG.***"),
        (format!("SK{}", hex(32)), "SK***"),
        (format!("dop_v1_{hex64}"), "dop_v1_***"),
        (format!("dapi{}", hex(32)), "dapi***"),
        (format!("dp.pt.{}", odd(43)), "dp.pt.***"),
        (format!("hvs.{}", odd(90)), "hvs.***"),
        (
            format!("AGE-SECRET-KEY-1{}", "QPZRY9X8GF".repeat(6)),
            "AGE-SECRET-KEY-1***",
        ),
        (format!("gsk_{}", odd(52)), "gsk_***"),
        (format!("xai-{}", odd(80)), "xai-***"),
        (format!("dckr_pat_{}", odd(27)), "dckr_pat_***"),
        (format!("shpat_{}", hex(32)), "shpat_***"),
        (format!("lin_api_{}", odd(40)), "lin_api_***"),
        (format!("tskey-auth-{}", odd(24)), "tskey-***"),
        (
            format!("eyJ{}.eyJ{}.{}", odd(33), odd(60), odd(43)),
            "eyJ***",
        ),
        (format!("a1b8Q~{}", odd(34)), "a1b8Q~***"),
        (format!("123456789:AA{}", odd(33)), "123456789:***"),
    ] {
        // `SK` and the like are in hexadecimal digits alone; the frame is none.
        for (before, after) in [
            ("", ""),
            ("x ", " y"),
            ("KEY=", "\n"),
            ("(\"", "\")"),
            ("\\n", "\\n"),
        ] {
            let text = format!("{before}{secret}{after}");
            assert_eq!(mask(&text), format!("{before}{shown}{after}"), "{text}");
        }
    }
}

#[test]
fn values_behind_a_name_that_says_so_are_masked() {
    let aws = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzTOPSECRET";
    let long = odd(40);
    for (text, want) in [
        ("password=hunter2", "password=***"),
        ("--password=letmein --user x", "--password=*** --user x"),
        ("--password hunter2x --user x", "--password *** --user x"),
        (
            "tool --api-key 3fa9c07be158d264 go",
            "tool --api-key *** go",
        ),
        ("--token 'aB3dE6gH9jK2'", "--token '***'"),
        (
            "sshpass -p letmein ssh me@host",
            "sshpass -p *** ssh me@host",
        ),
        ("curl -u me:letmein https://h", "curl -u me:*** https://h"),
        ("curl --user \"me:letmein\" x", "curl --user \"me:***\" x"),
        ("docker run -u 1000:1000 x", "docker run -u 1000:1000 x"),
        (
            "the --password flag and --token too",
            "the --password flag and --token too",
        ),
        (
            "mkdir -p directory-2026 -u name",
            "mkdir -p directory-2026 -u name",
        ),
        ("DB_PASSWORD=correcthorse\n", "DB_PASSWORD=***\n"),
        ("password: hunter2\n", "password: ***\n"),
        ("passwd: s3cr3tpw", "passwd: ***"),
        ("password = \"hunter2\"", "password = \"***\""),
        (
            "{\"password\": \"hunter2\", \"a\": 1}",
            "{\"password\": \"***\", \"a\": 1}",
        ),
        (
            "{\\\"password\\\": \\\"hunter2\\\"}",
            "{\\\"password\\\": \\\"***\\\"}",
        ),
        ("'db-password' => 'hunter2',", "'db-password' => '***',"),
        ("?user=x&password=abc123&y=1", "?user=x&password=***&y=1"),
        (
            "Server=h;Password=Sup3r;Database=d",
            "Server=h;Password=***;Database=d",
        ),
        ("dbPwd=Winter2026", "dbPwd=***"),
        ("passphrase=\"öffne2dich\"", "passphrase=\"***\""),
        ("client_secret=aB3dE6gH9j", "client_secret=***"),
        ("secret_key: \"aB3dE6gH9jK2\"", "secret_key: \"***\""),
        ("\"apiKey\":\"3fa9c07be158d264\"", "\"apiKey\":\"***\""),
        ("X-Api-Key: 3fa9c07be158d2643fa9c07b", "X-Api-Key: ***"),
        ("?access_token=aB3dE6gH9j&x=1", "?access_token=***&x=1"),
        (
            "GITHUB_TOKEN=3fa9c07be158d2643fa9c07be158d264",
            "GITHUB_TOKEN=***",
        ),
        (
            "https://me:pa55w0rd@example.org/x",
            "https://me:***@example.org/x",
        ),
        (
            "postgres://app:topsecret@db:5432/app",
            "postgres://app:***@db:5432/app",
        ),
        ("redis://:topsecret@cache", "redis://:***@cache"),
        (
            "https://3fa9c07be158d2643fa9c07b@sentry.io/1",
            "https://***@sentry.io/1",
        ),
        ("Cookie: sid=abc; theme=dark\nnext", "Cookie: sid=***\nnext"),
        ("Set-Cookie: sid=abc; Path=/\n", "Set-Cookie: sid=***\n"),
        ("-H 'Cookie: a=b; c=d' -v", "-H 'Cookie: a=***' -v"),
        (
            "Authorization: Basic dXNlcjpwYXNz\n",
            "Authorization: Basic ***\n",
        ),
        (
            "authorization: token 0123456789abcdef",
            "authorization: token ***",
        ),
        (
            "\"Authorization\": \"3fa9c07be158d2643fa9c07b\"",
            "\"Authorization\": \"***\"",
        ),
        (
            "https://h/x?sv=1&sig=aB3dE6gH9jK2mN5pQ8sT1vW4yZ7xC0%3D&e=1",
            "https://h/x?sv=1&sig=***&e=1",
        ),
    ] {
        assert_eq!(mask(text), want, "{text}");
    }
    for (text, want) in [
        (
            format!("aws_secret_access_key = {aws}\n"),
            "aws_secret_access_key = ***\n".to_owned(),
        ),
        (
            format!("AWS_SECRET_ACCESS_KEY={aws}"),
            "AWS_SECRET_ACCESS_KEY=***".to_owned(),
        ),
        (
            format!("\"SecretAccessKey\": \"{aws}\""),
            "\"SecretAccessKey\": \"***\"".to_owned(),
        ),
        (
            format!("AccountKey={long}==;End"),
            "AccountKey=***;End".to_owned(),
        ),
        (
            format!("Authorization: Bearer  {long}.x/y+z= end"),
            "Authorization: Bearer  *** end".to_owned(),
        ),
        (format!("bearer sk-ant-{long}"), "bearer ***".to_owned()),
        (
            format!("https://hooks.slack.com/services/T012/B012/{}", odd(24)),
            "https://hooks.slack.com/services/***".to_owned(),
        ),
        (
            format!("password={}", "a1".repeat(4000)),
            "password=***".to_owned(),
        ),
        (
            format!("token: \"{}\" x", "a1".repeat(4000)),
            "token: \"***\" x".to_owned(),
        ),
    ] {
        assert_eq!(mask(&text), want, "{text}");
    }
}

#[test]
fn a_private_key_is_masked_whole_and_talk_of_keys_is_not() {
    let body = format!("{}\n{}\n{}==\n", odd(64), odd(64), odd(30));
    for kind in [
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "EC PRIVATE KEY",
    ] {
        let key = format!("a\n-----BEGIN {kind}-----\n{body}-----END {kind}-----\nb\n");
        let want = format!("a\n-----BEGIN {kind}-----***-----END {kind}-----\nb\n");
        assert_eq!(mask(&key), want);
        // In JSON, in a diff, indented, in code.
        for joint in ["\\n", "\n+", "\n    ", "\\n\" +\n  \""] {
            let shown = mask(&key.replace('\n', joint));
            assert!(!shown.contains("aB3d") && shown.contains("b"), "{shown}");
        }
    }
    let pgp = format!(
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{body}-----END PGP PRIVATE KEY BLOCK-----"
    );
    assert!(!mask(&pgp).contains("aB3d"));
    let locked = format!(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{body}"
    );
    assert!(!mask(&locked).contains("aB3d") && !mask(&locked).contains("ENCRYPTED"));
    let cut = format!("-----BEGIN PRIVATE KEY-----\n{body}\nThe words after it stay. All of them.");
    assert!(mask(&cut).ends_with("***The words after it stay. All of them."));
    for talk in [
        "if text.contains(\"-----BEGIN PRIVATE KEY-----\") { refuse(); }",
        "a line `-----BEGIN RSA PRIVATE KEY-----` begins a key, said the agent",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n",
        "-------- a rule ------",
    ] {
        assert_eq!(mask(talk), talk);
    }
}

#[test]
fn words_code_and_hashes_stay() {
    let image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    for text in [
        "task-1234567890123456789 is done, risk-free",
        "sk-short and sk- and sk, sk-estimator-doc-link-container-2",
        "Bearer authentication failed; the bearer of news, Bearer token",
        "AKIA AIza ghp_ ghp_short AKIAlowercaseletters1234",
        "bearers of sk-ant- arms",
        "mask-ant-aaaaaaaaaaaaaaaaaaaa1",
        "größe §",
        "commit 3fa9c07be158d2643fa9c07be158d2643fa9c07b",
        "id: 550e8400-e29b-41d4-a716-446655440000",
        "tree=3fa9c07be158d2643fa9c07be158d264 sha256:3fa9c07be158d2643fa9c07be158d2643fa9c07be158d2643fa9c07be158d264",
        "token = parse()",
        "let token = self.tokens.next2();",
        "token: Token, password: String, secret: &str",
        "fn login(password: &str, token: Option<String>) -> bool",
        "token=token, password=password)",
        "password=None password=null password=$PASSWORD password=${PW} password=%s",
        "password = os.environ[\"DB_PASSWORD\"]",
        "password = getpass.getpass()",
        "const password = process.env.PASSWORD;",
        "Password: must be at least 8 characters",
        "{\"password\": \"must not be empty\"}",
        "\"type\": \"password\", \"password\": \"string\"",
        "error: unexpected token: identifier",
        "total_tokens=123456 max_token=4096 tokens: 123456789",
        "token == other && password != old",
        "secret: kube-system-secret-1",
        "secrets.GITHUB_TOKEN }} token: ${{ secrets.GITHUB_TOKEN }}",
        "std::token::Type12345678901234567890",
        "PWD=/home/someone/work1 OLDPWD=/tmp/abc123",
        "http://localhost:8080/path?a=b user@example.org:2222",
        "git@github.com:owner/repo.git ssh://git@host:22/x",
        "https://$USER:$PASS@host/ https://user:{password}@host",
        "12:34:56 2026-01-01T10:00:00Z a:b:c 12345678: x",
        "cookie: yes please; a cookie jar: two",
        "npm_config_registry_of_this_machine_is_set npm_lifecycle_event",
        "hf_hub_download(repo_id) dapi_something",
        "eyJhbGciOiJIUzI1NiJ9 alone is a head, eyJ too",
        "authorization: required",
        "authorization code flow",
        "monkey=banana12345 primary_key=abc12345678 cache-key: v1-linux-3fa9c07be158d264",
        "~/.ssh ~1Q~ x~y",
        "design: x, sig: abc",
        "keyboard: qwerty1234567890123456",
        "+++ b/src/token.rs\n@@ -1,2 +1,3 @@\n-    token: 1\n",
    ] {
        assert_eq!(mask(text), text);
    }
    assert_eq!(mask(image), image);
    let base64 = format!("data:image/png;base64,{}", image.repeat(200));
    assert_eq!(mask(&base64), base64);
}

#[test]
fn what_is_held_back_is_little_and_comes_out_at_once() {
    let (mut mask, mut out) = (Mask::default(), Vec::new());
    mask.push(b"working on it... 42 %", &mut out);
    assert_eq!(out, b"working on it... 42 %");
    let flood = "password=a1 sk- eyJ".repeat(100_000);
    mask.push(flood.as_bytes(), &mut out);
    mask.push(&b"eyJ".repeat(100_000), &mut out);
    assert!(mask.buffer.len() < 2 * KEPT, "{}", mask.buffer.len());
}

#[test]
fn a_colour_before_or_within_a_secret_does_not_show_it() {
    let paint = |parts: &[&str]| {
        let (mut mask, mut out) = (Mask::default(), Vec::new());
        for part in parts {
            match part.starts_with('\x1b') {
                true => mask.colour(part.as_bytes(), &mut out),
                false => mask.push(part.as_bytes(), &mut out),
            }
        }
        mask.finish(&mut out);
        String::from_utf8(out).unwrap()
    };
    let (red, off, long) = ("\x1b[31m", "\x1b[0m", odd(40));
    assert_eq!(
        paint(&["x", red, "sk-ant-", &long, off, " y"]),
        "x\x1b[31msk-ant-***\x1b[0m y"
    );
    assert_eq!(
        paint(&[
            "x",
            red,
            "sk-",
            off,
            "ant-",
            red,
            &long[..9],
            off,
            &long[9..],
            " y"
        ]),
        "x\x1b[31msk-\x1b[0mant-\x1b[31m***\x1b[0m y"
    );
    assert_eq!(
        paint(&["password=", red, "hunter2", off, "\n"]),
        "password=\x1b[31m***\x1b[0m\n"
    );
    assert_eq!(
        paint(&["plain ", red, "words", off]),
        "plain \x1b[31mwords\x1b[0m"
    );
}
