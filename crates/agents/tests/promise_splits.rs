//! However the bytes arrive, the claims are the same, and memory stays bounded.

use descartes_agents::promise::{
    Claim, ClaimKind, Detector, PromiseMatch, PromiseSpec, find_in_text,
};
use proptest::prelude::*;

/// What streams are made of: everything the rules know about, and its fragments.
const PIECES: &[&[u8]] = &[
    b"<promise>DONE</promise>",
    b"<PROMISE> done </promise>",
    b"<promise>STUCK</promise>",
    b"<promise>",
    b"</promise>",
    b"<pro",
    b"DONE",
    b"done",
    b"undone",
    b"All good. ",
    b"I will ",
    b"say it:",
    b"> ",
    b"- ",
    b"**",
    b"\"",
    b"'",
    b"`",
    b"```",
    b"~~~",
    b"````",
    b"```rust",
    b"\x1b[1m",
    b"\x1b[0m",
    b"\x1b",
    b"\x1b]0;title\x07",
    b"\x1b]8;;",
    b"\x1b\\",
    b"\x1b[38;5",
    b"\n",
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b" ",
    b"\t",
    b"\0",
    b"\xff",
    b"\xe2\x9c",
    b"\x85",
    "✅".as_bytes(),
    "…".as_bytes(),
    "é".as_bytes(),
    b".",
    b"!",
    b"begin here",
    b"Work until green.",
];

const PROMPTS: &[&str] = &[
    "",
    "begin here\n<promise>DONE</promise>\nWork until green.",
    "<promise>DONE</promise>\nbegin here",
    "Say it. <promise>DONE</promise>\nsay it:\n\nDONE",
    "<promise>DONE</promise>",
];

fn spec(mode: PromiseMatch) -> PromiseSpec {
    PromiseSpec {
        done: Some("DONE".into()),
        abort: Some("STUCK".into()),
        mode,
    }
}

fn modes() -> impl Strategy<Value = PromiseMatch> {
    prop_oneof![
        Just(PromiseMatch::Tagged),
        Just(PromiseMatch::Line),
        Just(PromiseMatch::Anywhere),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(PIECES), 0..60).prop_map(|pieces| pieces.concat())
}

fn claims<'a>(
    spec: &PromiseSpec,
    prompt: &str,
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Claim> {
    let mut detector = Detector::new(spec, prompt);
    let mut claims = Vec::new();
    for part in parts {
        detector.push(part, &mut claims);
    }
    detector.finish(&mut claims);
    claims
}

/// Cuts `bytes` into parts of the given sizes, again and again.
fn parts<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (part, rest) = bytes.split_at((*size).min(bytes.len()));
        parts.push(part);
        bytes = rest;
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_split_gives_the_same_claims(
        bytes in stream(),
        mode in modes(),
        prompt in prop::sample::select(PROMPTS),
        sizes in prop::collection::vec(1usize..40, 1..8),
    ) {
        let spec = spec(mode);
        let whole = claims(&spec, prompt, [&*bytes]);
        prop_assert_eq!(&claims(&spec, prompt, bytes.chunks(1)), &whole);
        prop_assert_eq!(&claims(&spec, prompt, parts(&bytes, &sizes)), &whole);
    }

    #[test]
    fn a_quiet_stream_may_be_judged_at_any_time_without_telling_a_claim_twice(
        bytes in stream(),
        mode in modes(),
        prompt in prop::sample::select(PROMPTS),
        sizes in prop::collection::vec(1usize..40, 1..8),
    ) {
        let spec = spec(mode);
        let whole = claims(&spec, prompt, [&*bytes]);
        let mut detector = Detector::new(&spec, prompt);
        let mut told = Vec::new();
        for part in parts(&bytes, &sizes) {
            detector.push(part, &mut told);
            detector.finish(&mut told);
        }
        prop_assert!(told.windows(2).all(|pair| pair[0].offset < pair[1].offset), "{:?}", told);
        // Untagged words may be told while they stand alone and be part of more in the end.
        for claim in whole.iter().filter(|_| mode == PromiseMatch::Tagged) {
            prop_assert!(told.iter().any(|other| other.offset == claim.offset), "{:?}", claim);
        }
    }

    #[test]
    fn offsets_lead_just_behind_the_claim(bytes in stream(), mode in modes()) {
        for claim in claims(&spec(mode), "", [&*bytes]) {
            let end = usize::try_from(claim.offset).unwrap();
            let last = bytes[end - 1].to_ascii_lowercase();
            prop_assert!(matches!(last, b'>' | b'e'), "{}", bytes[..end].escape_ascii());
            prop_assert!(claim.words.len() <= 500);
            prop_assert!(claim.text.eq_ignore_ascii_case("DONE") || claim.text == "STUCK");
        }
    }
}

#[test]
fn the_tag_is_found_before_its_line_ends_only_when_asked() {
    let mut detector = Detector::new(&spec(PromiseMatch::Tagged), "");
    let mut told = Vec::new();
    detector.push(b"ok\n<promise>DONE</promise>", &mut told);
    assert!(told.is_empty());
    detector.finish(&mut told);
    assert_eq!(told.len(), 1);
    detector.finish(&mut told);
    detector.push(b" \nmore\n", &mut told);
    detector.finish(&mut told);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].offset, 26);
}

#[test]
fn what_is_only_seen_is_told_later_or_never() {
    let mut detector = Detector::new(&spec(PromiseMatch::Tagged), "");
    let (mut seen, mut told) = (Vec::new(), Vec::new());
    detector.push(b"<promise>DONE</promise>", &mut told);
    detector.peek(&mut seen);
    detector.push(b" later\n<promise>STUCK</promise>", &mut told);
    detector.peek(&mut seen);
    detector.finish(&mut told);
    detector.peek(&mut seen);
    let kinds = |claims: &[Claim]| claims.iter().map(|claim| claim.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&seen), [ClaimKind::Done, ClaimKind::Abort]);
    assert_eq!(kinds(&told), [ClaimKind::Abort]);
}

#[test]
fn what_follows_may_still_make_an_echo_of_a_quiet_claim() {
    let prompt = "<promise>DONE</promise>\nis what you print.";
    let mut detector = Detector::new(&spec(PromiseMatch::Tagged), prompt);
    let mut told = Vec::new();
    detector.push(b"<promise>DONE</promise>\nis what", &mut told);
    detector.peek(&mut told);
    assert_eq!(told, []);
    detector.push(b" I print.\n", &mut told);
    assert_eq!(told.len(), 1);
}

#[test]
fn a_fence_left_open_hides_its_last_line_until_the_stream_is_quiet() {
    let mut detector = Detector::new(&spec(PromiseMatch::Tagged), "");
    let mut told = Vec::new();
    detector.push(b"```\ncode\n<promise>DONE</promise>\n\n", &mut told);
    assert_eq!(told, []);
    detector.finish(&mut told);
    assert_eq!(told.len(), 1);
    detector.push(b"```\nbye\n", &mut told);
    detector.finish(&mut told);
    assert_eq!(told.len(), 1);
}

#[test]
fn an_abort_tells_why() {
    let out =
        b"trying\nThe \x1b[31mkey\x1b[0m is missing.\n\nAsk the owner. <promise>stuck</promise>\n";
    let found = claims(&spec(PromiseMatch::Line), "", [&out[..]]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, ClaimKind::Abort);
    assert_eq!(found[0].text, "stuck");
    assert_eq!(
        found[0].words,
        "trying\nThe key is missing.\nAsk the owner."
    );
}

#[test]
fn in_a_message_the_last_claim_wins_and_the_prompt_is_no_matter() {
    let spec = spec(PromiseMatch::Tagged);
    let kind = |text: &str| find_in_text(&spec, text).map(|claim| claim.kind);
    assert_eq!(
        kind("<promise>STUCK</promise>\nNo.\n<promise>DONE</promise>"),
        Some(ClaimKind::Done)
    );
    assert_eq!(
        kind("<promise>DONE</promise>\n<promise>STUCK</promise>\nBye."),
        Some(ClaimKind::Abort)
    );
    assert_eq!(kind("I will print <promise>DONE</promise>."), None);
}

#[test]
fn without_promises_nothing_is_found() {
    let none = PromiseSpec {
        done: None,
        abort: None,
        mode: PromiseMatch::Anywhere,
    };
    assert!(claims(&none, "", [&b"<promise></promise>\n\n"[..]]).is_empty());
}

/// The tag behind so much on one line, the whole pushed in parts of `size`.
fn on_a_long_line(
    before: &[u8],
    length: usize,
    end: &[u8],
    size: usize,
    mode: PromiseMatch,
) -> Vec<Claim> {
    let mut line = before.to_vec();
    while line.len() < length {
        line.extend_from_slice(b"words \x1b[1mand\x1b[0m words, ");
    }
    line.extend_from_slice(end);
    claims(&spec(mode), "", line.chunks(size))
}

#[test]
fn a_claim_at_the_end_of_a_line_of_any_length_is_found() {
    for length in [4_000, 65_000, 131_000, 131_072, 131_073, 197_000, 700_000] {
        for size in [1_000, 65_536, 1 << 20] {
            let tail = |before: &[u8], end: &[u8]| {
                on_a_long_line(before, length, end, size, PromiseMatch::Tagged).len()
            };
            assert_eq!(
                tail(b"", b"done. <promise>DONE</promise>\n"),
                1,
                "{length} {size}"
            );
            assert_eq!(
                tail(b"", b"done. <promise>DONE</promise>"),
                1,
                "{length} {size}"
            );
            assert_eq!(
                tail(b"", b"done <promise>DONE</promise>\n"),
                0,
                "{length} {size}"
            );
            assert_eq!(
                tail(b"> ", b"done. <promise>DONE</promise>\n"),
                0,
                "{length} {size}"
            );
            assert_eq!(
                tail(b"", b"\n<promise>DONE</promise>\n"),
                1,
                "{length} {size}"
            );
        }
    }
}

#[test]
fn a_line_too_long_to_keep_opens_no_fence() {
    let end = b"\n<promise>DONE</promise>\nmore\n";
    let found = |length| on_a_long_line(b"```", length, end, 999, PromiseMatch::Tagged).len();
    assert_eq!((found(4_000), found(700_000)), (0, 1));
    let marks = [&b"x"[..], &[b'`'; 200_000], end].concat();
    assert_eq!(
        claims(&spec(PromiseMatch::Tagged), "", marks.chunks(999)).len(),
        1
    );
}

#[test]
fn words_across_the_edge_of_what_was_searched_are_found() {
    let spec = spec(PromiseMatch::Anywhere);
    for edge in [131_072, 196_608, 262_144] {
        for words in [&b" done "[..], b" d\x1b[0mone ", b" don\x1b[1m\x1b[0me "] {
            for at in edge - 12..edge + 3 {
                let mut line = vec![b'.'; 400_000];
                line.splice(at..at, words.iter().copied());
                line.push(b'\n');
                let found = claims(&spec, "", line.chunks(70_001));
                assert_eq!(found.len(), 1, "{at} {words:?}");
            }
        }
    }
}

#[test]
fn words_that_count_anywhere_are_found_anywhere_in_a_long_line() {
    let edges = [65_536, 131_072, 196_608, 262_144].map(|edge| (edge - 40..edge + 40).step_by(8));
    for place in (0..400_000)
        .step_by(39_973)
        .chain(edges.into_iter().flatten())
    {
        let mut line = b"words \x1b[1mand\x1b[0m words, ".repeat(400_000 / 25);
        let title = b" \x1b]0;DONE or not\x07 ";
        // Not inside a sequence.
        let at = place - place % 25 + 5;
        line.splice(at..at, title.iter().copied());
        line.push(b'\n');
        let found = |line: &[u8]| claims(&spec(PromiseMatch::Anywhere), "", line.chunks(70_001));
        assert_eq!(found(&line), [], "{place}");
        line.splice(at..at, *b" it is do\x1b[0mne, ");
        let claims = found(&line);
        assert_eq!(claims.len(), 1, "{place}");
        assert_eq!(claims[0].offset, at as u64 + 15, "{place}");
        assert_eq!(
            claims,
            self::claims(&spec(PromiseMatch::Anywhere), "", [&*line])
        );
    }
}

#[test]
fn an_echo_is_known_by_a_neighbour_of_any_length() {
    let neighbour = "long words ".repeat(30_000);
    let prompt = format!("{neighbour}\n<promise>DONE</promise>\n");
    let echo = |out: &str| {
        claims(
            &spec(PromiseMatch::Tagged),
            &prompt,
            out.as_bytes().chunks(9_999),
        )
        .len()
    };
    assert_eq!(echo(&prompt), 0);
    assert_eq!(
        echo(&format!("{neighbour}and\n<promise>DONE</promise>\n")),
        1
    );
    let sentence = format!("{neighbour}and so on. <promise>DONE</promise>");
    let claims = claims(
        &spec(PromiseMatch::Tagged),
        &sentence,
        [sentence.as_bytes()],
    );
    assert_eq!(claims, []);
}
